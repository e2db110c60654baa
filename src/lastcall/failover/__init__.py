"""A node is gone: what may be forced, and why."""
