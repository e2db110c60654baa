"""Collects the facts that the doctor judges."""
