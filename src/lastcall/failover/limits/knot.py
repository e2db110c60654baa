"""A node as the controller knows it: what was seen of it, the policy that holds for it, and whether it is late (pure)."""

from dataclasses import dataclass

from lastcall import names
from lastcall.failover.knowing import proofs
from lastcall.failover.knowing.sightings import Sightings
from lastcall.failover.limits.policies import Choice
from lastcall.model.observed import WatchedNode

UNCHOSEN = 40.0
"""Seconds of silence after which a node is late for which no policy holds (what Kubernetes' own Lease lasts)."""


@dataclass(frozen=True)
class Knot:
    """A node, what was seen of it, and the policy that holds for it."""

    node: WatchedNode
    seen: Sightings
    choice: Choice

    @property
    def patience(self) -> float:
        """Seconds of silence after which it is late."""
        policy = self.choice.policy
        return proofs.patience(policy.spec.suspect_after_seconds if policy else UNCHOSEN, self.seen.fresh)

    def silent(self, now: float) -> bool:
        """Whether nothing was heard of it for too long."""
        return now >= self.seen.quiet_since + self.patience

    def overdue(self, now: float) -> bool:
        """Whether it has not been heard of as it should be: of machines that are lost at once one is suspected first."""
        return now >= self.seen.quiet_since + min(self.patience, self.seen.fresh)

    def in_trouble(self, now: float) -> bool:
        """Whether it is to be looked at closely: there is something of ours on it, or the taint, or it is not well."""
        node = self.node
        if node.mark or node.ready.status != "True" or self.silent(now):
            return True
        return any(taint.key == names.OUT_OF_SERVICE for taint in node.spec.taints)
