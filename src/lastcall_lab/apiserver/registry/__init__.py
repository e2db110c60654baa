"""Reads and writes of objects: from a decoded request to the store."""
