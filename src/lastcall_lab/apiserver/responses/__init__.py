"""Response bodies from objects and lists: tables, watches, transforms."""
