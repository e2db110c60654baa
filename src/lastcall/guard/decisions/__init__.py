"""Decisions of the guard (pure)."""
