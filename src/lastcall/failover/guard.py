"""Asks the storm limits with all that is known: the nodes, the marks on them, and what this controller is just about to mark.

Between the decision to mark a node and the moment at which its mark is seen lies a write. Whoever is decided about meanwhile
has to know of it, or two nodes are fenced where one may be.
"""

from collections.abc import Collection, Sequence

from lastcall.failover import overview, policies, storms
from lastcall.failover.observing import Observing
from lastcall.failover.outside import Cluster
from lastcall.failover.owner import OwnerMark
from lastcall.failover.storms import HOUR, Answer, Fencing, Member, View
from lastcall.model.fence_policy import FencePolicy

KEPT = 1.0
"""Seconds for which the list of all nodes is kept: when hundreds are in trouble, each asks."""


class Guard:
    """For all nodes of one controller."""

    def __init__(self, cluster: Cluster, observing: Observing) -> None:
        self._cluster = cluster
        self._observing = observing
        self._claims: dict[str, OwnerMark] = {}
        self._over: list[Fencing] = []
        self._members: dict[str, tuple[float, Sequence[Member]]] = {}

    def claim(self, name: str, mark: OwnerMark) -> None:
        """A node is about to be marked; told in the same step in which that was decided."""
        self._claims[name] = mark

    def unclaimed(self, name: str) -> None:
        """A live read has shown no mark on it."""
        self._claims.pop(name, None)

    def over(self, name: str, mark: OwnerMark, now: float) -> None:
        """A fencing is over; if the machine may have been switched off it counts for its hour."""
        self._over = [one for one in self._over if now < one.began + HOUR]
        if mark.switched_off:
            fencing = Fencing(node=name, boot_id=mark.boot_id, domain="", control_plane=False, began=now, open=False)
            self._over.append(fencing)

    def may_fence(
        self, name: str, boot_id: str, policy: FencePolicy, *, etcd: Collection[str], now: float, wall: float
    ) -> Answer:
        """``storms.may_fence``; failure domains are those of the policy that holds for the node."""
        domain = policy.spec.domain_label
        knots = self._observing.knots.values()
        view = View(
            members=self._all(domain, etcd, now),
            fencings=[*overview.fencings(knots, self._claims, domain=domain, now=now, wall=wall), *self._over],
            api_failed=now if self._cluster.blind else self._cluster.api_failed,
            clock_stepped=self._observing.clock.stepped,
        )
        return storms.may_fence(name, boot_id, view, policies.storm_limits(policy.spec.limits), now)

    def _all(self, domain: str, etcd: Collection[str], now: float) -> Sequence[Member]:
        kept = self._members.get(domain)
        if kept is None or now >= kept[0] + KEPT:
            members = overview.members(self._observing.knots.values(), domain=domain, etcd=etcd, now=now)
            kept = self._members[domain] = (now, members)
        return kept[1]
