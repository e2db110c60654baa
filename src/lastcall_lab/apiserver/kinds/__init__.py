"""What each kind does differently, one module for each family of kinds."""
