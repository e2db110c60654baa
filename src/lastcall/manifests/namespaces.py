"""The namespaces of lastcall's objects (pure)."""

from lastcall.manifests.rbac import Object
from lastcall.names import DRAINS_NAMESPACE, NODES_NAMESPACE, SYSTEM_NAMESPACE

_OURS = {f"app.kubernetes.io/{key}": "lastcall" for key in ("name", "part-of")}


def namespace_object(name: str, labels: dict[str, str], *, standard: str = "restricted") -> Object:
    """A namespace that enforces one of the pod security standards, by default the strictest."""
    enforced = {"pod-security.kubernetes.io/enforce": standard}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**labels, **enforced}}}


def system_namespace() -> Object:
    """The namespace of lastcall's pods, shared by agents and controller, so both make it the same.

    Agents use the host's network and its directories, which the standard ``privileged`` alone permits.
    """
    return namespace_object(SYSTEM_NAMESPACE, _OURS, standard="privileged")


def nodes_namespace() -> Object:
    """The namespace of the agents' Leases, shared by agents and controller, so both make it the same.

    It is separate because a role cannot exclude a name: an agent that may write any Lease in a namespace could also
    write the Lease by which controllers elect their leader.
    """
    return namespace_object(NODES_NAMESPACE, _OURS)


def drains_namespace() -> Object:
    """The namespace of the Leases of drains: who drains can write no Lease by which others decide."""
    return namespace_object(DRAINS_NAMESPACE, _OURS)
