"""What makes a plan by lastcall's rules doubtful (pure): what a snapshot does not tell, or tells of another time."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from lastcall.failover.upstream import caution
from lastcall.failover.upstream.plan import FailoverPlan
from lastcall.failover.upstream.snapshot_index import SnapshotIndex
from lastcall.model import duration
from lastcall.model.snapshot import Snapshot

HEARTBEAT = timedelta(minutes=6)
"""A kubelet writes an unchanged status every 5 minutes (``nodeStatusReportFrequency``): so old are its signs without Leases."""


def list_doubts(plan: FailoverPlan, snapshot: Snapshot, now: datetime, *, given: bool) -> Iterator[str]:
    """Sentences. ``given``: somebody has said that the snapshot was taken at ``now``; else it is the present time."""
    cluster = SnapshotIndex.from_snapshot(snapshot)
    if unheard := sorted(_nodes_unheard(plan, cluster, now)):
        yield f"no Lease for: {', '.join(unheard)}: when they were last heard of is not known"
    if since := _silent_for(cluster, now, given=given):
        what = "is --now right?" if given else "give --now, the time at which it was taken"
        yield f"every sign of life in it is older than {duration.format_elapsed(since.total_seconds())}: {what}"


def _nodes_unheard(plan: FailoverPlan, cluster: SnapshotIndex, now: datetime) -> Iterator[str]:
    """Nodes from which something is forced, or would be in a later round, as nothing says that they are alive."""
    snapshot = cluster.snapshot
    used = {pod.spec.node_name for pod in snapshot.pods} | {one.spec.node_name for one in snapshot.attachments}
    detached = {one.node for one in plan.force_detach}
    for name, node in cluster.nodes.items():
        forced = name in detached or (name in used and bool(node.out_of_service))
        if forced and name not in cluster.renewed and not caution.force_objection(cluster, name, now):
            yield name


def _silent_for(cluster: SnapshotIndex, now: datetime, *, given: bool) -> timedelta | None:
    """For how long no node was heard of, if ``now`` is hardly when the snapshot was taken; else None.

    Nodes that are Ready are heard of. Where none is, all may be silent indeed.
    """
    signs = [sign for node in cluster.nodes.values() if (sign := cluster.last_sign_of_life(node))]
    ready = any(node.is_ready and cluster.last_sign_of_life(node) for node in cluster.nodes.values())
    if not signs or (given and not ready):
        return None
    since = now - max(signs)
    return since if since >= (caution.SILENCE if cluster.renewed else HEARTBEAT) else None
