"""Why a pod on a node in trouble is left alone (pure)."""

from datetime import datetime

from lastcall.failover.upstream import pod_gc
from lastcall.failover.upstream.plan_rules import PlanRules
from lastcall.failover.upstream.snapshot_index import SnapshotIndex
from lastcall.model.snapshot import Node, SnapshotPod
from lastcall.model.tolerations import NO_EXECUTE


def is_in_trouble(cluster: SnapshotIndex, pod: SnapshotPod) -> bool:
    """Whether the pod's node is missing, not Ready, or out of service."""
    node = cluster.node_of(pod)
    return bool(pod.spec.node_name) and (node is None or not node.is_ready or bool(node.out_of_service))


def keep_reason(cluster: SnapshotIndex, pod: SnapshotPod, rules: PlanRules, now: datetime) -> str:
    """A sentence about a pod on a node in trouble that is neither removed nor evicted."""
    name = pod.spec.node_name
    if not rules.upstream and (refused := pod_gc.removal_objection(cluster, pod, rules, now)):
        return f"node {name} {refused}"
    node = cluster.node_of(pod)
    if node is None:
        return f"node {name} is missing, but not for longer than the quarantine of 40s"
    if pod.is_terminating:
        return f"it is terminating, and node {name} {_node_text(node)}: its kubelet has to confirm the end"
    if any(taint.effect == NO_EXECUTE for taint in node.spec.taints):
        return f"it tolerates the NoExecute taints of node {name} for ever"
    return f"node {name} {_node_text(node)}, and has no NoExecute taint"


def _node_text(node: Node) -> str:
    if not node.out_of_service:
        return "is not Ready, but not out of service"
    return "is out of service, but Ready" if node.is_ready else "is out of service and not Ready"
