"""Objects and their history: the store, the change log, watches, and the database on disk."""
