"""What ``lastcall agent`` may do in a cluster, if it keeps a watchdog: its ServiceAccount and a Role (pure)."""

from lastcall.manifests.rbac import Grant, Object, rules
from lastcall.names import SYSTEM_NAMESPACE

NAME = "lastcall-agent"
"""Of the ServiceAccount, the Role and its binding."""

_RBAC = "rbac.authorization.k8s.io"


def grants() -> list[Grant]:
    """All that it asks for."""
    verbs = ("get", "create", "patch")
    why = "the Lease of its node, which promises the watchdog's reset"
    return [Grant("leases", verbs, why, "coordination.k8s.io", SYSTEM_NAMESPACE)]


def objects() -> list[Object]:
    """In the order in which they can be made; their namespace is there already."""
    return [
        _object("v1", "ServiceAccount"),
        {**_object(f"{_RBAC}/v1", "Role"), "rules": rules(grants())},
        {
            **_object(f"{_RBAC}/v1", "RoleBinding"),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": SYSTEM_NAMESPACE}],
        },
    ]


def _object(api_version: str, kind: str) -> Object:
    labels = {f"app.kubernetes.io/{key}": value for key, value in _LABELS.items()}
    metadata = {"name": NAME, "namespace": SYSTEM_NAMESPACE, "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


_LABELS = {"name": "lastcall", "component": "agent", "part-of": "lastcall"}
