"""Objects and their history: the store, change logs, and the database on disk."""
