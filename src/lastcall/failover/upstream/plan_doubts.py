"""Warnings about a plan by lastcall's rules (pure): facts that a snapshot lacks, or that are of another time."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from lastcall.failover.upstream import caution
from lastcall.failover.upstream.plan import FailoverPlan
from lastcall.failover.upstream.snapshot_index import SnapshotIndex
from lastcall.model import duration
from lastcall.model.snapshot import Snapshot

HEARTBEAT = timedelta(minutes=6)
"""A kubelet writes an unchanged status every 5 minutes (``nodeStatusReportFrequency``), so a heartbeat without Leases
may be that old.
"""


def list_doubts(plan: FailoverPlan, snapshot: Snapshot, now: datetime, *, given: bool) -> Iterator[str]:
    """The warnings, as sentences.

    ``given``: the user gave ``now`` as the snapshot's time; otherwise it is the present.
    """
    cluster = SnapshotIndex.from_snapshot(snapshot)
    if unheard := sorted(_nodes_unheard(plan, cluster, now)):
        yield f"no Lease for: {', '.join(unheard)}: when they were last heard of is not known"
    if since := _silent_for(cluster, now, given=given):
        what = "is --now right?" if given else "give --now, the time at which it was taken"
        yield f"every sign of life in it is older than {duration.format_elapsed(since.total_seconds())}: {what}"


def _nodes_unheard(plan: FailoverPlan, cluster: SnapshotIndex, now: datetime) -> Iterator[str]:
    """Nodes without a Lease from which something is forced, or would be in a later round."""
    snapshot = cluster.snapshot
    used = {pod.spec.node_name for pod in snapshot.pods} | {one.spec.node_name for one in snapshot.attachments}
    detached = {one.node for one in plan.force_detach}
    for name, node in cluster.nodes.items():
        forced = name in detached or (name in used and bool(node.out_of_service))
        if forced and name not in cluster.renewed and not caution.force_objection(cluster, name, now):
            yield name


def _silent_for(cluster: SnapshotIndex, now: datetime, *, given: bool) -> timedelta | None:
    """For how long no node showed a sign of life, if the snapshot was probably not taken at ``now``; else None.

    Ready nodes have recent signs of life. If no node is Ready, all of them may really be silent.
    """
    signs = [sign for node in cluster.nodes.values() if (sign := cluster.last_sign_of_life(node))]
    ready = any(node.is_ready and cluster.last_sign_of_life(node) for node in cluster.nodes.values())
    if not signs or (given and not ready):
        return None
    since = now - max(signs)
    return since if since >= (caution.SILENCE if cluster.renewed else HEARTBEAT) else None
