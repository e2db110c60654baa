"""What ``lastcall agent`` may do in a cluster: to tell that its node goes down, and to keep a watchdog (pure)."""

from lastcall.manifests import namespaces
from lastcall.manifests import own_node as own_nodes
from lastcall.manifests.rbac import Grant, Object
from lastcall.manifests.role_bindings import role_objects
from lastcall.names import GROUP, NODES_NAMESPACE, PEERS_SECRET, SYSTEM_NAMESPACE

NAME = "lastcall-agent"
"""Of the ServiceAccount, the roles and their bindings."""

_LABELS = {
    f"app.kubernetes.io/{key}": value
    for key, value in (("name", "lastcall"), ("component", "agent"), ("part-of", "lastcall"))
}


def agent_grants(*, peers: bool = False) -> list[Grant]:
    """All that it asks for; with ``peers`` also what it needs to know of those who are asked when the API server is lost."""
    verbs = ("get", "create", "patch")
    why = "the Lease of its node, which promises the watchdog's reset, and tells of leases on shared storage"
    always = [
        Grant("nodeshutdowns", ("create", "patch"), "its node's own word on its going down", GROUP),
        Grant("leases", verbs, why, "coordination.k8s.io", NODES_NAMESPACE),
    ]
    asked = [
        Grant("nodes", ("list",), "which nodes there are, and where they are asked"),
        Grant("secrets", ("get",), "the keys that agents share", "", SYSTEM_NAMESPACE, (PEERS_SECRET,)),
    ]
    return [*always, *asked] if peers else always


def agent_objects(*, peers: bool = False, own_node: bool = False) -> list[Object]:
    """In the order in which they can be made; the namespace of the ServiceAccount is there already.

    ``own_node``: also what keeps an agent from writing of other nodes.
    """
    metadata = {"name": NAME, "namespace": SYSTEM_NAMESPACE, "labels": _LABELS}
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    bound = own_nodes.own_node_policy(NAME, SYSTEM_NAMESPACE, _LABELS) if own_node else []
    roles = role_objects(agent_grants(peers=peers), to=NAME, of=SYSTEM_NAMESPACE, labels=_LABELS)
    return [namespaces.nodes_namespace(), account, *roles, *bound]
