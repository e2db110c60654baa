"""Helpers for the objects that controllers handle: owners, conditions, selectors."""
