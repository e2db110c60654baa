"""The namespaces of lastcall's objects (pure)."""

from lastcall.manifests.rbac import Object
from lastcall.names import NODES_NAMESPACE

_OURS = {f"app.kubernetes.io/{key}": "lastcall" for key in ("name", "part-of")}


def namespace_object(name: str, labels: dict[str, str]) -> Object:
    """Its pods keep to the strictest of the pod security standards."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**labels, **restricted}}}


def nodes_namespace() -> Object:
    """That of the Leases of agents: theirs as much as the controller's, so that it is the same for both.

    It is one of its own since a role cannot except a name: who may write any Lease there is could write the one by which
    controllers elect their leader, if it were there too.
    """
    return namespace_object(NODES_NAMESPACE, _OURS)
