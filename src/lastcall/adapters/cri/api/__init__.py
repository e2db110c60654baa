"""The Container Runtime Interface, generated; see README.md."""
