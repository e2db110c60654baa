"""Compares the age of two reads of one object (pure)."""


def revision_number(revision: str) -> int:
    """The number of a resourceVersion; with etcd it is the revision. 0 if it is not a number."""
    return int(revision) if revision.isdecimal() else 0
