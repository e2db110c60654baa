"""Which of two readings of one object is the older one (pure)."""


def revision_number(revision: str) -> int:
    """Of a resourceVersion: with etcd it is the number of a revision. 0 if it is something else."""
    return int(revision) if revision.isdecimal() else 0
