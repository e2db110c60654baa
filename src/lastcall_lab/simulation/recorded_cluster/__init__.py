"""Simulates a user's own cluster, read from the output of ``kubectl get -o yaml``."""
