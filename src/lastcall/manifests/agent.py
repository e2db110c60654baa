"""The agent's access rights: for its NodeShutdown, its Lease, its watchdog and its pods' specs (pure)."""

from lastcall.manifests import namespaces
from lastcall.manifests import own_node as own_nodes
from lastcall.manifests.rbac import Grant, Object
from lastcall.manifests.role_bindings import role_objects
from lastcall.names import GROUP, NODES_NAMESPACE, PEERS_SECRET, SYSTEM_NAMESPACE

NAME = "lastcall-agent"
"""Name of the ServiceAccount, the roles and their bindings."""

_LABELS = {
    f"app.kubernetes.io/{key}": value
    for key, value in (("name", "lastcall"), ("component", "agent"), ("part-of", "lastcall"))
}


def agent_grants(*, peers: bool = False) -> list[Grant]:
    """All grants of the agent; with ``peers`` also those for finding the peers to ask when the API server is lost."""
    verbs = ("get", "create", "patch")
    why = "the Lease of its node, which promises the watchdog's reset, and tells of leases on shared storage"
    always = [
        Grant("nodeshutdowns", ("create", "patch"), "its node's own word on its going down", GROUP),
        Grant(
            "pods", ("list", "watch"), "priorities, hooks and sidecars of its node's pods; a role cannot name the node"
        ),
        Grant("leases", verbs, why, "coordination.k8s.io", NODES_NAMESPACE),
    ]
    asked = [
        Grant("nodes", ("list",), "which nodes there are, and where they are asked"),
        Grant("secrets", ("get",), "the keys that agents share", "", SYSTEM_NAMESPACE, (PEERS_SECRET,)),
    ]
    return [*always, *asked] if peers else always


def agent_objects(*, peers: bool = False, own_node: bool = False) -> list[Object]:
    """The objects in an order in which they can be created; the ServiceAccount's namespace must exist.

    ``own_node``: also the policy that restricts an agent to its own node.
    """
    metadata = {"name": NAME, "namespace": SYSTEM_NAMESPACE, "labels": _LABELS}
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    bound = own_nodes.own_node_policy(NAME, SYSTEM_NAMESPACE, _LABELS) if own_node else []
    roles = role_objects(agent_grants(peers=peers), to=NAME, of=SYSTEM_NAMESPACE, labels=_LABELS)
    return [namespaces.nodes_namespace(), account, *roles, *bound]
