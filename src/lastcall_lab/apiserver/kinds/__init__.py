"""The behaviour of each built-in kind, one module per family of kinds."""
