"""The failover of a simulated cluster: BMCs, what is needed in the API, and the controller's replicas."""

import math
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from lastcall.adapters.kube.resources import PODS, Object
from lastcall.errors import NotFound
from lastcall.lab.apiserver.authorization.authorizer import Authorization
from lastcall.lab.apiserver.store import Key
from lastcall.lab.making import make
from lastcall.lab.simulation.failover import manifests, orders
from lastcall.lab.simulation.failover.bmcs import Bmcs
from lastcall.lab.simulation.failover.hearing import LATELY, Hearing
from lastcall.lab.simulation.failover.replicas import Replica, Replicas
from lastcall.lab.simulation.scenario import Failover
from lastcall.model import duration
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
        self._suspect_after: list[tuple[float, float]] = []
        self._observes: float | None = None
        """Since when the policy says that nothing is to be fenced."""

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

    def edited(self, spec: Object) -> None:
        """Fields of the policy are other ones now."""
        now = self._cluster.clock.boottime()
        if "suspectAfter" in spec:
            self._suspect_after.append((now, duration.parse(spec["suspectAfter"]) / duration.SECOND))
        if "mode" in spec:
            self._observes = now if spec["mode"] == "Observe" else None

    def _least(self, usual: float) -> float:
        """Of what the policy has said now and a moment ago."""
        since = self._cluster.clock.boottime() - LATELY
        before = [(-math.inf, usual), *self._suspect_after]
        in_force = [value for (_, value), (until, _) in pairwise([*before, (math.inf, 0.0)]) if until >= since]
        return min(in_force)

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
        now = cluster.clock.boottime()
        cluster.truth.orders.append(
            order._replace(
                suspect_after=self._least(self._settings.suspect_after),
                forbidden=0.0 if self._observes is None else now - self._observes,
            )
        )

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
            failed_over=not cluster.machines[name].powered and not self._bound(name),
        )

    def _bound(self, name: str) -> bool:
        """Whether a pod is bound to it that would run elsewhere; those of DaemonSets belong to their machines."""
        pods = (pod for pod in self._cluster.all(PODS) if pod["spec"].get("nodeName") == name)
        owners = (pod["metadata"].get("ownerReferences") or () for pod in pods)
        return any(not any(one["kind"] == "DaemonSet" for one in found) for found in owners)

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
