"""Checks whether this machine will shut down gracefully: the findings, and what to do about them (pure)."""
