"""The controller's grants by place, each with its reason; ``rbac`` turns them into rules and compares audits."""

from lastcall import names
from lastcall.manifests.guard_webhooks import CONFIGURATION
from lastcall.manifests.labels import NAME
from lastcall.manifests.rbac import Grant
from lastcall.model.snapshot import NODE_LEASES

_FOLLOW = ("list", "watch")
_LEASES = "coordination.k8s.io"
_POLICIES, _SHUTDOWNS = "fencepolicies", "nodeshutdowns"


def cluster_grants(*, detach: bool) -> list[Grant]:
    """Grants in all namespaces and for cluster-wide objects. ``detach``: the controller detaches volumes itself."""
    attachments = ("get", *_FOLLOW, "delete") if detach else _FOLLOW
    return [
        Grant(
            "nodes",
            ("get", *_FOLLOW, "patch"),
            "watched; read live, marked, tainted and untainted; given back to load balancers after a drain",
        ),
        Grant(
            "pods",
            ("get", "list", "delete"),
            "of nodes in trouble: read live, deleted, also by force; what replaces them",
        ),
        Grant("pods/status", ("patch",), "a pod that is deleted by force has failed, says its status before"),
        Grant("persistentvolumes", ("get",), "which claim a volume that is attached belongs to"),
        Grant("volumeattachments", attachments, "watched; read live and deleted if nobody else does", "storage.k8s.io"),
        Grant("events", ("create",), "what is done is told on the Node and the pods"),
        Grant(_POLICIES, _FOLLOW, "what is to be done", names.GROUP),
        Grant(f"{_POLICIES}/status", ("patch",), "whether a policy is heeded", names.GROUP),
        Grant(_SHUTDOWNS, ("get", *_FOLLOW), "what nodes say of their own shutdowns", names.GROUP),
        Grant("endpointslices", ("list",), "whether a guard answers", "discovery.k8s.io"),
        Grant(
            "validatingwebhookconfigurations",
            ("get", "update"),
            "the guard's webhooks are withdrawn while no guard answers, and put back",
            "admissionregistration.k8s.io",
            names=(CONFIGURATION,),
        ),
    ]


def lease_grants() -> list[Grant]:
    """Grants in the namespaces of node and agent Leases, which do not depend on the controller's own."""
    follow = ("get", *_FOLLOW)
    return [
        Grant("leases", follow, "when nodes were heard", _LEASES, NODE_LEASES),
        Grant("leases", follow, "by which agents promise a watchdog's reset", _LEASES, names.NODES_NAMESPACE),
    ]


def own_grants(namespace: str) -> list[Grant]:
    """Grants in the controller's own namespace."""
    return [
        Grant("leases", ("get", "patch"), "who leads", _LEASES, namespace, (NAME,)),
        Grant("leases", ("create",), "the Lease is made anew if somebody deletes it", _LEASES, namespace),
        Grant("secrets", ("get",), "the credentials of fences, read when they are needed", "", namespace),
    ]


def all_grants(namespace: str, *, detach: bool) -> list[Grant]:
    """All grants of the controller."""
    return [*cluster_grants(detach=detach), *lease_grants(), *own_grants(namespace)]
