"""Implementations of ``ports.fences.Fence``, which switch machines off, for real devices."""
