"""What a PATCH does to an object, and who owns which field afterwards (pure)."""
