"""The state of a pod's containers, and the status derived from it (pure)."""
