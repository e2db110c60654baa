"""Lookups by name in a snapshot (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lastcall.failover.upstream.controller_manager_rules import UpstreamNodeState
from lastcall.model.snapshot import NODE_LEASES, Node, Snapshot, SnapshotPod


@dataclass(frozen=True)
class SnapshotIndex:
    """A snapshot with the lookups that the rules need."""

    snapshot: Snapshot
    nodes: Mapping[str, Node]
    renewed: Mapping[str, datetime]
    """The time of the last renewal of each node's Lease, by node; nodes without one are absent."""

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> "SnapshotIndex":
        """Indexes a snapshot."""
        leases = [one for one in snapshot.leases if one.metadata.namespace == NODE_LEASES]
        return cls(
            snapshot,
            nodes={node.metadata.name: node for node in snapshot.nodes},
            renewed={one.metadata.name: one.spec.renew_time for one in leases if one.spec.renew_time},
        )

    def node_of(self, pod: SnapshotPod) -> Node | None:
        """The pod's node; None if the pod is not bound, or the node is not in the snapshot."""
        return self.nodes.get(pod.spec.node_name)

    def node_state(self, name: str) -> UpstreamNodeState | None:
        """A node as the rules of Kubernetes take it; None if it does not exist."""
        node = self.nodes.get(name)
        return UpstreamNodeState(node.is_ready, bool(node.out_of_service)) if node else None

    def last_sign_of_life(self, node: Node) -> datetime | None:
        """The last sign of life of the node's kubelet: its Lease's renewal, or the heartbeat of its Ready condition."""
        ready = node.ready_condition
        signs = (self.renewed.get(node.metadata.name), ready.last_heartbeat_time if ready else None)
        return max((sign for sign in signs if sign), default=None)
