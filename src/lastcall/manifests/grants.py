"""What the controller may do, by where, each with its reason; ``rbac`` makes rules of it, and holds them against an audit."""

from lastcall import names
from lastcall.manifests.labels import NAME
from lastcall.manifests.rbac import Grant
from lastcall.model.snapshot import NODE_LEASES

_FOLLOW = ("list", "watch")
_POLICIES, _SHUTDOWNS = "fencepolicies", "nodeshutdowns"


def cluster_grants() -> list[Grant]:
    """In all namespaces, and for what has none."""
    return [
        Grant("nodes", ("get", *_FOLLOW, "patch"), "watched; read live, marked, tainted and untainted"),
        Grant("pods", ("list", "delete"), "of nodes in trouble: read live, deleted, also by force"),
        Grant("pods/status", ("patch",), "a pod that is deleted by force has failed, says its status before"),
        Grant("persistentvolumes", ("get",), "which claim a volume that is attached belongs to"),
        Grant("volumeattachments", (*_FOLLOW, "delete"), "watched; deleted where nobody else does", "storage.k8s.io"),
        Grant("events", ("create",), "what is done is told on the Node and the pods"),
        Grant(_POLICIES, _FOLLOW, "what is to be done", names.GROUP),
        Grant(f"{_POLICIES}/status", ("patch",), "whether a policy is heeded", names.GROUP),
        Grant(_SHUTDOWNS, ("get", *_FOLLOW), "what nodes say of their own going down", names.GROUP),
    ]


def node_lease_grants() -> list[Grant]:
    """In the namespace of the nodes' Leases."""
    return [Grant("leases", ("get", *_FOLLOW), "when nodes were heard", "coordination.k8s.io", NODE_LEASES)]


def own_grants(namespace: str) -> list[Grant]:
    """In the controller's own namespace."""
    group = "coordination.k8s.io"
    return [
        Grant(
            "leases", ("get", *_FOLLOW), "who leads, and by which agents promise a watchdog's reset", group, namespace
        ),
        Grant("leases", ("patch",), "it leads", group, namespace, (NAME,)),
        Grant("leases", ("create",), "the Lease is made anew if somebody deletes it", group, namespace),
        Grant("secrets", ("get",), "the credentials of fences, read when they are needed", "", namespace),
    ]


def every_grant(namespace: str) -> list[Grant]:
    """All of them."""
    return [*cluster_grants(), *node_lease_grants(), *own_grants(namespace)]
