"""Subresources and reviews: binding, eviction, scale, log, exec, access and token reviews."""
