"""When pods are evicted because of their node's taints (pure): one round of taint eviction."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from lastcall.failover.upstream.plan_rules import PlanRules
from lastcall.failover.upstream.snapshot_index import SnapshotIndex
from lastcall.model.snapshot import Node, SnapshotPod
from lastcall.model.tolerations import FOR_EVER, seconds_tolerated


def taint_evictions(cluster: SnapshotIndex, rules: PlanRules, now: datetime) -> Iterator[tuple[SnapshotPod, datetime]]:
    """The pods that do not tolerate each NoExecute taint of their node for ever, and when they are deleted.

    Only taints and tolerations count: not whether the node is ready, nor whether the pod is terminating or finished.
    Eviction by taint ignores PodDisruptionBudgets.
    """
    for pod in cluster.snapshot.pods:
        node = cluster.node_of(pod)
        if node and (seconds := _seconds_left(pod, node, rules, now)) != FOR_EVER:
            yield pod, now + timedelta(seconds=seconds)


def _seconds_left(pod: SnapshotPod, node: Node, rules: PlanRules, now: datetime) -> float:
    """Seconds from now, at least 0.

    Upstream counts from when the controller first sees the taint, and again after its restart. lastcall counts from
    ``timeAdded``, if set.
    """
    tolerations, comparisons = pod.spec.tolerations, rules.comparisons
    whole = seconds_tolerated(node.spec.taints, tolerations, comparisons=comparisons)
    if rules.upstream or whole == FOR_EVER:
        return whole
    return min(
        max(
            0.0,
            seconds_tolerated([taint], tolerations, comparisons=comparisons) - _seconds_since(taint.time_added, now),
        )
        for taint in node.spec.taints
    )


def _seconds_since(since: datetime | None, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds()) if since else 0.0
