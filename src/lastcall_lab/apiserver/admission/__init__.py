"""Admission control between a request and the store: it can change an object, reject it, or warn."""
