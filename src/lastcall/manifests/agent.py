"""All objects that ``lastcall agent`` needs in a cluster: its access rights, and itself (pure)."""

import re
from dataclasses import dataclass

from lastcall.errors import InvalidInput
from lastcall.manifests import namespaces, resource_definitions
from lastcall.manifests import own_node as own_nodes
from lastcall.manifests.controller import IMAGE, image_violations
from lastcall.manifests.daemon_set import CONTAINERD, NAME, agent_config_map, agent_daemon_set, agent_labels
from lastcall.manifests.drainer import drainer_objects
from lastcall.manifests.metrics_access import metrics_access_objects
from lastcall.manifests.rbac import Grant, Object
from lastcall.manifests.role_bindings import role_objects
from lastcall.manifests.viewer import viewer_role
from lastcall.model.decoding import quote_value
from lastcall.model.snapshot import NODE_LEASES
from lastcall.names import GROUP, NODES_NAMESPACE, PEERS_SECRET, SYSTEM_NAMESPACE

_ENDPOINT = re.compile(r"unix://(/[A-Za-z0-9._-]+){2,}")


@dataclass(frozen=True, kw_only=True)
class AgentChoices:
    """The choices that differ between clusters. Raises InvalidInput for an invalid one.

    ``peers``: also what ``watchdog.peers`` of its configuration needs. ``own_node``: also the policy that restricts an
    agent to its own node. ``node_metrics``: metrics over TLS on the node's address, and what their readers need.
    """

    image: str = IMAGE
    endpoint: str = CONTAINERD
    peers: bool = False
    own_node: bool = False
    node_metrics: bool = False

    def __post_init__(self) -> None:
        wrong = image_violations(self.image)
        if not _ENDPOINT.fullmatch(self.endpoint):
            rule = "must be a socket in a directory of its own, such as unix:///run/containerd/containerd.sock"
            wrong.append(f"--container-runtime-endpoint: {quote_value(self.endpoint)}: {rule}")
        if wrong:
            raise InvalidInput("manifests", wrong)


def agent_grants(*, peers: bool = False, own_node: bool = False) -> list[Grant]:
    """All grants of the agent; with ``peers`` also those for finding the peers to ask when the API server is lost.

    With ``own_node`` also ``node_grants``, which only a policy of admission restricts to one node.
    """
    verbs = ("get", "create", "patch")
    why = "the Lease of its node, which promises the watchdog's reset, and tells of leases on shared storage"
    always = [
        Grant("nodeshutdowns", ("get", "create", "patch"), "its node's own word on its shutdown", GROUP),
        Grant(
            "pods", ("list", "watch"), "priorities, hooks and sidecars of its node's pods; a role cannot name the node"
        ),
        Grant(
            "endpointslices",
            ("list", "watch"),
            "during a shutdown: whether Services still send traffic to its pods",
            "discovery.k8s.io",
        ),
        Grant("leases", verbs, why, "coordination.k8s.io", NODES_NAMESPACE),
        Grant("replicasets", ("get",), "whether the leftovers of a shutdown are replaced", "apps"),
        Grant("replicationcontrollers", ("get",), "as replicasets"),
    ]
    asked = [
        Grant("nodes", ("list",), "which nodes there are, and where they are asked"),
        Grant("secrets", ("get",), "the keys that agents share", "", SYSTEM_NAMESPACE, (PEERS_SECRET,)),
    ]
    return [*always, *(node_grants() if own_node else ()), *(asked if peers else ())]


def node_grants() -> list[Grant]:
    """What an agent without the kubelet's identity needs to write its Node, its Lease and its pods during a shutdown.

    No right to evict: an Eviction names no node, so that no policy could restrict it to one.
    """
    return [
        Grant("nodes", ("get", "patch"), "where the kubelet's identity is missing: cordons its Node, and undoes it"),
        Grant("nodes/status", ("patch",), "the same: NotReady and the conditions of a shutdown"),
        Grant("pods", ("delete",), "the same: so that replacements start while its pods end"),
        Grant("pods/status", ("patch",), "the same: not ready before SIGTERM, and how its pods ended"),
        Grant(
            "leases",
            ("patch",),
            "the same: renews its node's Lease while the kubelet is stopped",
            "coordination.k8s.io",
            NODE_LEASES,
        ),
    ]


def agent_objects(choices: AgentChoices) -> list[Object]:
    """All of them, in an order in which they can be created."""
    return [
        namespaces.system_namespace(),
        resource_definitions.node_shutdown_definition(),
        *agent_access_objects(peers=choices.peers, own_node=choices.own_node),
        agent_config_map(SYSTEM_NAMESPACE),
        *(metrics_access_objects(NAME, SYSTEM_NAMESPACE, agent_labels()) if choices.node_metrics else ()),
        agent_daemon_set(
            SYSTEM_NAMESPACE, image=choices.image, endpoint=choices.endpoint, node_metrics=choices.node_metrics
        ),
    ]


def agent_access_objects(*, peers: bool = False, own_node: bool = False) -> list[Object]:
    """Its ServiceAccount and its rights, in an order in which they can be created; the namespace must exist."""
    metadata = {"name": NAME, "namespace": SYSTEM_NAMESPACE, "labels": agent_labels()}
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    bound = own_nodes.own_node_policy(NAME, SYSTEM_NAMESPACE, agent_labels()) if own_node else []
    grants = agent_grants(peers=peers, own_node=own_node)
    roles = role_objects(grants, to=NAME, of=SYSTEM_NAMESPACE, labels=agent_labels())
    asked = [viewer_role(agent_labels()), *drainer_objects(agent_labels())]
    return [namespaces.nodes_namespace(), account, *bound, *roles, *asked]
