"""Collects the facts that ``lastcall doctor`` judges."""
