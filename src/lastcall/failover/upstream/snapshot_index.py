"""A snapshot, with its objects by name (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lastcall.failover.upstream.controller_manager_rules import UpstreamNodeState
from lastcall.model.snapshot import NODE_LEASES, Node, Snapshot, SnapshotPod


@dataclass(frozen=True)
class SnapshotIndex:
    """What the rules ask for."""

    snapshot: Snapshot
    nodes: Mapping[str, Node]
    renewed: Mapping[str, datetime]
    """When each node last renewed its Lease, if it has one."""

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> "SnapshotIndex":
        """The same snapshot."""
        leases = [one for one in snapshot.leases if one.metadata.namespace == NODE_LEASES]
        return cls(
            snapshot,
            nodes={node.metadata.name: node for node in snapshot.nodes},
            renewed={one.metadata.name: one.spec.renew_time for one in leases if one.spec.renew_time},
        )

    def node_of(self, pod: SnapshotPod) -> Node | None:
        """None if it has none, or one that is not there."""
        return self.nodes.get(pod.spec.node_name)

    def node_state(self, name: str) -> UpstreamNodeState | None:
        """What the rules of Kubernetes need of a node; None if there is no such node."""
        node = self.nodes.get(name)
        return UpstreamNodeState(node.is_ready, bool(node.out_of_service)) if node else None

    def last_sign_of_life(self, node: Node) -> datetime | None:
        """When the node's kubelet was last heard of: by its Lease, or by the heartbeat of its condition Ready."""
        ready = node.ready_condition
        signs = (self.renewed.get(node.metadata.name), ready.last_heartbeat_time if ready else None)
        return max((sign for sign in signs if sign), default=None)
