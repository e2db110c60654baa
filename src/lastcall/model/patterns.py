"""Patterns of texts in Kubernetes objects, as regular expressions with the same meaning in Python, Go and CEL."""

DURATION = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
"""A duration such as ``1m30s``: Go's syntax, with at most five digits per unit (Gateway API, GEP-2257)."""
NAME = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
"""A fencer's name: a DNS label (RFC 1123)."""
QUALIFIED = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
"""The key of a label or annotation (``IsQualifiedName``)."""
