"""The failover of a simulated cluster: BMCs, what is needed in the API, and the controller's replicas."""

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from lastcall.errors import NotFound
from lastcall.lab.apiserver.authorization.authorizer import Authorization
from lastcall.lab.apiserver.store import Key
from lastcall.lab.making import make
from lastcall.lab.simulation.failover import manifests, orders
from lastcall.lab.simulation.failover.bmcs import Bmcs
from lastcall.lab.simulation.failover.hearing import Hearing
from lastcall.lab.simulation.failover.replicas import Replica, Replicas
from lastcall.lab.simulation.scenario import Failover
from lastcall.model.observed import WatchedShutdown
from lastcall.model.shutdown import Outcome

if TYPE_CHECKING:
    from lastcall.lab.simulation.cluster import Cluster

_SOON = 0.1


class FailingOver:
    """There are always BMCs; ``replicas`` are none if the scenario has no controller."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._settings = cluster.scenario.failover
        self.bmcs = Bmcs(cluster.machines, cluster.clock, self._ordered)
        self._hearing = Hearing(cluster.plane.server.store, cluster.clock) if self._settings else None
        self.replicas: Replicas | None = None

    async def begin(self) -> None:
        """A controller leads when this returns, if there is to be one."""
        cluster = self._cluster
        if self._settings is None:
            return
        by_role = cluster.plane.server.authorizer.mode is Authorization.RBAC
        for obj in manifests.needed(rights=by_role):
            await make(cluster.plane.admin, obj)
        await self._make_policy()
        numbers = range(1, self._settings.replicas + 1)
        self.replicas = Replicas(
            [
                Replica(number, cluster.plane, self.bmcs, cluster.clock, cluster.truth, cluster.seed)
                for number in numbers
            ]
        )
        self.replicas.start()
        await cluster.until(lambda: self.replicas is not None and self.replicas.lead)

    async def _make_policy(self) -> None:
        """When its kind is served."""
        assert self._settings
        while True:
            try:
                await make(self._cluster.plane.admin, manifests.policy(self._settings))
                return
            except NotFound:
                await self._cluster.clock.sleep(_SOON)

    def _ordered(self, node: str, hit: str) -> None:
        cluster = self._cluster
        if self._settings is None or self._hearing is None:
            return
        order = orders.order(
            cluster.clock.boottime(),
            node,
            hit,
            machines={name: self._machine(name, self._settings, self._hearing) for name in cluster.machines},
            suspect_after=self._settings.suspect_after,
            before=cluster.truth.orders,
        )
        cluster.truth.orders.append(order)

    def _machine(self, name: str, settings: Failover, hearing: Hearing) -> orders.Machine:
        cluster = self._cluster
        return orders.Machine(
            powered=cluster.machines[name].powered,
            boot_id=cluster.hosts[name].profile.boot_id,
            silence=hearing.silence(name),
            lately=hearing.lately(name),
            ready=cluster.standing.boots([name]).get(name, ""),
            domain=cluster.labels[name].get(settings.domain_label, ""),
            held=self._held(name),
        )

    def _held(self, name: str) -> float:
        """For how long the machine has said that it goes down; what a clock that is wrong says counts for nothing."""
        cluster = self._cluster
        stored = cluster.plane.server.store.get(Key("nodeshutdowns.lastcall.dev", "", name))
        if stored is None or cluster.hosts[name].clock.skew:
            return 0.0
        word = msgspec.json.decode(stored.data, type=WatchedShutdown)
        status, same = word.status, word.spec.boot_id == cluster.hosts[name].profile.boot_id
        if not same or not status.deadline_time or status.outcome == Outcome.CANCELLED.value:
            return 0.0
        return max(0.0, datetime.fromisoformat(status.deadline_time).timestamp() - cluster.clock.wall())
