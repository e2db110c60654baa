"""Names and labels of the controller's objects (pure)."""

NAME = "lastcall-controller"
"""Name of the ServiceAccount, the roles, the Lease, the Deployment and its budget."""


def selector_labels() -> dict[str, str]:
    """The labels that select the controller's pods; they never change."""
    return {"app.kubernetes.io/name": "lastcall", "app.kubernetes.io/component": "controller"}


def common_labels() -> dict[str, str]:
    """The labels of all the controller's objects."""
    return {**selector_labels(), "app.kubernetes.io/part-of": "lastcall"}
