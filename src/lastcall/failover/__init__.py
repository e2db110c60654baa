"""Failover of lost nodes: what the controller may force, and on which evidence."""
