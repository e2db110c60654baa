"""The pods of a snapshot that are force-deleted (pure): one round of Pod GC."""

from collections.abc import Iterator
from datetime import datetime

from lastcall.failover.upstream import caution, controller_manager_rules
from lastcall.failover.upstream.controller_manager_rules import RemovalReason
from lastcall.failover.upstream.plan_rules import PlanRules
from lastcall.failover.upstream.snapshot_index import SnapshotIndex
from lastcall.model.snapshot import SnapshotPod


def forced_removals(
    cluster: SnapshotIndex, rules: PlanRules, now: datetime
) -> Iterator[tuple[SnapshotPod, RemovalReason]]:
    """Each pod once, by the first rule that applies: surplus finished pods come before all others."""
    doomed = {pod.key for pod in _surplus_pods(cluster, rules)}
    for pod in cluster.snapshot.pods:
        why = RemovalReason.TERMINATED if pod.key in doomed else _removal_reason(cluster, pod, rules, now)
        if why:
            yield pod, why


def removal_objection(cluster: SnapshotIndex, pod: SnapshotPod, rules: PlanRules, now: datetime) -> str:
    """Why lastcall leaves a pod alone that upstream would remove, as the end of a sentence about the pod's node.

    Empty if upstream would not remove it, or if there is no objection. Unscheduled and finished pods need no proof that
    a node is dead.
    """
    why = _upstream_reason(cluster, pod, missed=True)
    if why not in (RemovalReason.OUT_OF_SERVICE, RemovalReason.ORPHANED):
        return ""
    node = cluster.node_of(pod)
    objection = caution.force_objection(cluster, pod.spec.node_name, now)
    return (
        caution.staying_reason(pod, node, now, comparisons=rules.comparisons) if node and not objection else objection
    )


def _surplus_pods(cluster: SnapshotIndex, rules: PlanRules) -> list[SnapshotPod]:
    finished = [pod for pod in cluster.snapshot.pods if controller_manager_rules.is_finished(pod.status.phase)]
    return controller_manager_rules.surplus_pods(finished, rules.finished, _removal_order)


def _removal_reason(cluster: SnapshotIndex, pod: SnapshotPod, rules: PlanRules, now: datetime) -> RemovalReason | None:
    why = _upstream_reason(cluster, pod, missed=rules.quarantine_elapsed)
    return None if why and not rules.upstream and removal_objection(cluster, pod, rules, now) else why


def _upstream_reason(cluster: SnapshotIndex, pod: SnapshotPod, *, missed: bool) -> RemovalReason | None:
    name = pod.spec.node_name
    return controller_manager_rules.removal_reason(
        terminating=pod.is_terminating, bound=bool(name), node=cluster.node_state(name), missed=missed
    )


def _removal_order(pod: SnapshotPod) -> controller_manager_rules.RemovalOrder:
    metadata, status = pod.metadata, pod.status
    created = metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else float("-inf")
    return controller_manager_rules.removal_order(
        phase=status.phase, reason=status.reason, created=created, name=metadata.name, namespace=metadata.namespace
    )
