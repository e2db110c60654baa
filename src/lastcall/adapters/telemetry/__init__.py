"""Metrics, and the HTTP server that serves them."""
