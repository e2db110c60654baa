"""A node as the controller tracks it: its observations, its policy, and whether it is overdue (pure)."""

from dataclasses import dataclass

from lastcall import names
from lastcall.failover.evidence import proofs
from lastcall.failover.evidence.node_observations import NodeObservations
from lastcall.failover.limits.policy_choice import PolicyChoice
from lastcall.model.observed import WatchedNode

UNCHOSEN = 40.0
"""Seconds of silence after which a node without a policy is overdue (the duration of Kubernetes' own Lease)."""


@dataclass(frozen=True)
class TrackedNode:
    """A node, its observations, and the policy that applies to it."""

    node: WatchedNode
    seen: NodeObservations
    choice: PolicyChoice

    @property
    def suspect_seconds(self) -> float:
        """Seconds of silence after which the node is suspected."""
        policy = self.choice.policy
        return proofs.suspect_seconds(policy.spec.suspect_after_seconds if policy else UNCHOSEN, self.seen.fresh)

    def is_silent(self, now: float) -> bool:
        """Whether the node showed no sign of life for ``suspect_seconds``."""
        return now >= self.seen.quiet_since + self.suspect_seconds

    def is_overdue(self, now: float) -> bool:
        """Whether a renewal is late. Of machines that are lost at once, one passes the time of suspicion first."""
        return now >= self.seen.quiet_since + min(self.suspect_seconds, self.seen.fresh)

    def is_in_trouble(self, now: float) -> bool:
        """Whether the node needs a close look: it has our mark or the taint, is not Ready, or is silent."""
        node = self.node
        if node.mark_text or node.ready_condition.status != "True" or self.is_silent(now):
            return True
        return any(taint.key == names.OUT_OF_SERVICE for taint in node.spec.taints)
