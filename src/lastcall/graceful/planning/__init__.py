"""Decisions about time and order, before and during a shutdown: phases, budgets, pacing (pure)."""
