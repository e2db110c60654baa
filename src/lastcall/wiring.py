"""Joins programs to real adapters."""
