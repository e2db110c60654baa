"""From an object or a list to the body that a client asked for: tables, watches, transforms."""
