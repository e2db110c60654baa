"""Why a pod of a node that is in trouble is left alone (pure)."""

from datetime import datetime

from lastcall.failover.upstream import pods
from lastcall.failover.upstream.cluster import Cluster
from lastcall.failover.upstream.rules import Rules
from lastcall.model.snapshot import Node, Pod
from lastcall.model.tolerations import NO_EXECUTE


def in_trouble(cluster: Cluster, pod: Pod) -> bool:
    """Whether the pod has a node that is missing, not Ready or out of service."""
    node = cluster.node_of(pod)
    return bool(pod.spec.node_name) and (node is None or not node.ready or bool(node.out_of_service))


def why(cluster: Cluster, pod: Pod, rules: Rules, now: datetime) -> str:
    """A sentence about a pod in trouble that is neither removed nor evicted."""
    name = pod.spec.node_name
    if not rules.upstream and (refused := pods.refused(cluster, pod, rules, now)):
        return f"node {name} {refused}"
    node = cluster.node_of(pod)
    if node is None:
        return f"node {name} is missing, but not for longer than the quarantine of 40s"
    if pod.terminating:
        return f"it is terminating, and node {name} {_state(node)}: its kubelet has to confirm the end"
    if any(taint.effect == NO_EXECUTE for taint in node.spec.taints):
        return f"it tolerates the NoExecute taints of node {name} for ever"
    return f"node {name} {_state(node)}, and has no NoExecute taint"


def _state(node: Node) -> str:
    if not node.out_of_service:
        return "is not Ready, but not out of service"
    return "is out of service, but Ready" if node.ready else "is out of service and not Ready"
