"""What ``lastcall agent`` may do in a cluster: to tell that its node goes down, and to keep a watchdog (pure)."""

from lastcall.manifests.rbac import Grant, Object
from lastcall.manifests.roles import granted
from lastcall.names import GROUP, SYSTEM_NAMESPACE

NAME = "lastcall-agent"
"""Of the ServiceAccount, the roles and their bindings."""

_LABELS = {
    f"app.kubernetes.io/{key}": value
    for key, value in (("name", "lastcall"), ("component", "agent"), ("part-of", "lastcall"))
}


def grants() -> list[Grant]:
    """All that it asks for."""
    verbs = ("get", "create", "patch")
    why = "the Lease of its node, which promises the watchdog's reset"
    return [
        Grant("nodeshutdowns", ("create", "patch"), "its node's own word on its going down", GROUP),
        Grant("leases", verbs, why, "coordination.k8s.io", SYSTEM_NAMESPACE),
    ]


def objects() -> list[Object]:
    """In the order in which they can be made; their namespace is there already."""
    metadata = {"name": NAME, "namespace": SYSTEM_NAMESPACE, "labels": _LABELS}
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    return [account, *granted(grants(), to=NAME, of=SYSTEM_NAMESPACE, labels=_LABELS)]
