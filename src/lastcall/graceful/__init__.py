"""Graceful node shutdown: ends the node's pods in order, within the granted time, and then releases the delay lock."""
