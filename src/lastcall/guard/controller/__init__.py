"""The loops of the guard: one answers reviews, one prepares applications."""
