"""Decides the next step of one node's failover."""
