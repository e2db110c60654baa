"""Checks whether this machine will shut down gracefully: what each check finds, and what to do about it (pure)."""
