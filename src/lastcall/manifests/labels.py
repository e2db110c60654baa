"""What the controller's objects are called, and how they are found (pure)."""

NAME = "lastcall-controller"
"""Of the ServiceAccount, the roles, the Lease, the Deployment and its budget."""


def selector_labels() -> dict[str, str]:
    """The labels of its pods by which they are chosen: they never change."""
    return {"app.kubernetes.io/name": "lastcall", "app.kubernetes.io/component": "controller"}


def common_labels() -> dict[str, str]:
    """The labels of everything that belongs to it."""
    return {**selector_labels(), "app.kubernetes.io/part-of": "lastcall"}
