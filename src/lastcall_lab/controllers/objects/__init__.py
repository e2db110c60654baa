"""What controllers know of objects: owners, conditions, selectors."""
