"""A node as the controller knows it: what was seen of it, the policy that holds for it, and whether it is late (pure)."""

from dataclasses import dataclass

from lastcall import names
from lastcall.failover.evidence import proofs
from lastcall.failover.evidence.node_observations import NodeObservations
from lastcall.failover.limits.policy_choice import PolicyChoice
from lastcall.model.observed import WatchedNode

UNCHOSEN = 40.0
"""Seconds of silence after which a node is late for which no policy holds (what Kubernetes' own Lease lasts)."""


@dataclass(frozen=True)
class TrackedNode:
    """A node, what was seen of it, and the policy that holds for it."""

    node: WatchedNode
    seen: NodeObservations
    choice: PolicyChoice

    @property
    def suspect_seconds(self) -> float:
        """Seconds of silence after which it is late."""
        policy = self.choice.policy
        return proofs.suspect_seconds(policy.spec.suspect_after_seconds if policy else UNCHOSEN, self.seen.fresh)

    def is_silent(self, now: float) -> bool:
        """Whether nothing was heard of it for too long."""
        return now >= self.seen.quiet_since + self.suspect_seconds

    def is_overdue(self, now: float) -> bool:
        """Whether it has not been heard of as it should be: of machines that are lost at once one is suspected first."""
        return now >= self.seen.quiet_since + min(self.suspect_seconds, self.seen.fresh)

    def is_in_trouble(self, now: float) -> bool:
        """Whether it is to be looked at closely: there is something of ours on it, or the taint, or it is not well."""
        node = self.node
        if node.mark_text or node.ready_condition.status != "True" or self.is_silent(now):
            return True
        return any(taint.key == names.OUT_OF_SERVICE for taint in node.spec.taints)
