"""Patterns of texts in Kubernetes objects, as regular expressions that Python, Go and CEL read alike."""

DURATION = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
"""A duration as in ``1m30s``: Go's, with at most five digits for each unit (Gateway API, GEP-2257)."""
NAME = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
"""A DNS label (RFC 1123), as far as a fencer's name goes."""
QUALIFIED = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
"""The key of a label or annotation (``IsQualifiedName``)."""
