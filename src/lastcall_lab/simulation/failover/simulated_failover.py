"""The failover of a simulated cluster: BMCs, what is needed in the API, and the controller's replicas."""

import math
from datetime import datetime
from itertools import pairwise

import msgspec

from lastcall.adapters.kube.resources import PODS, Object
from lastcall.errors import NotFound
from lastcall.model import duration
from lastcall.model.observed import WatchedShutdown
from lastcall.model.shutdown import ShutdownOutcome
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.storage.store import StorageKey
from lastcall_lab.control_plane.create_objects import create_object
from lastcall_lab.simulation.environment import SimulatedEnvironment
from lastcall_lab.simulation.failover import fence_orders, manifests
from lastcall_lab.simulation.failover.bmcs import SimulatedBmcs
from lastcall_lab.simulation.failover.kubelet_contacts import LATELY, KubeletContacts
from lastcall_lab.simulation.failover.replicas import ControllerReplica, ControllerReplicas
from lastcall_lab.simulation.scenario import FailoverSettings

_SOON = 0.1


class SimulatedFailover:
    """There are always BMCs; ``replicas`` are none if the scenario has no controller."""

    def __init__(self, cluster: SimulatedEnvironment) -> None:
        self._cluster = cluster
        self._settings = cluster.scenario.failover
        self.bmcs = SimulatedBmcs(cluster.machines, cluster.clock, self._record_order)
        self._hearing = KubeletContacts(cluster.plane.server.store, cluster.clock) if self._settings else None
        self.replicas: ControllerReplicas | None = None
        self._suspect_after: list[tuple[float, float]] = []
        self._observes: float | None = None
        """Since when the policy says that nothing is to be fenced."""

    async def start(self) -> None:
        """A controller leads when this returns, if there is to be one."""
        cluster = self._cluster
        if self._settings is None:
            return
        by_role = cluster.plane.server.authorizer.mode is AuthorizationMode.RBAC
        for obj in manifests.simulation_objects(rights=by_role):
            await create_object(cluster.plane.admin, obj)
        await self._create_policy()
        numbers = range(1, self._settings.replicas + 1)
        self.replicas = ControllerReplicas(
            [
                ControllerReplica(number, cluster.plane, self.bmcs, cluster.clock, cluster.truth, cluster.seed)
                for number in numbers
            ]
        )
        self.replicas.start()
        await cluster.wait_until(lambda: self.replicas is not None and self.replicas.has_leader)

    def note_policy_edit(self, spec: Object) -> None:
        """Fields of the policy are other ones now."""
        now = self._cluster.clock.boottime()
        if "suspectAfter" in spec:
            self._suspect_after.append((now, duration.parse(spec["suspectAfter"]) / duration.SECOND))
        if "mode" in spec:
            self._observes = now if spec["mode"] == "Observe" else None

    def _shortest_suspect_after(self, usual: float) -> float:
        """Of what the policy has said now and a moment ago."""
        since = self._cluster.clock.boottime() - LATELY
        before = [(-math.inf, usual), *self._suspect_after]
        in_force = [value for (_, value), (until, _) in pairwise([*before, (math.inf, 0.0)]) if until >= since]
        return min(in_force)

    async def _create_policy(self) -> None:
        """When its kind is served."""
        assert self._settings
        while True:
            try:
                await create_object(self._cluster.plane.admin, manifests.fence_policy(self._settings))
                return
            except NotFound:
                await self._cluster.clock.sleep(_SOON)

    def _record_order(self, node: str, hit: str) -> None:
        cluster = self._cluster
        if self._settings is None or self._hearing is None:
            return
        order = fence_orders.describe_order(
            cluster.clock.boottime(),
            node,
            hit,
            machines={name: self._machine_at_order(name, self._settings, self._hearing) for name in cluster.machines},
            suspect_after=self._settings.suspect_after,
            before=cluster.truth.orders,
        )
        now = cluster.clock.boottime()
        cluster.truth.orders.append(
            order._replace(
                suspect_after=self._shortest_suspect_after(self._settings.suspect_after),
                forbidden=0.0 if self._observes is None else now - self._observes,
            )
        )

    def _machine_at_order(
        self, name: str, settings: FailoverSettings, hearing: KubeletContacts
    ) -> fence_orders.MachineAtOrder:
        cluster = self._cluster
        return fence_orders.MachineAtOrder(
            powered=cluster.machines[name].is_powered,
            boot_id=cluster.hosts[name].profile.boot_id,
            silence=hearing.silence(name),
            lately=hearing.longest_recent_silence(name),
            ready=cluster.standing.ready_boots([name]).get(name, ""),
            domain=cluster.labels[name].get(settings.domain_label, ""),
            held=self._announced_shutdown_seconds(name),
            emptied=not self._has_movable_pods(name),
        )

    def _has_movable_pods(self, name: str) -> bool:
        """Whether a pod is bound to it that would run elsewhere; those of DaemonSets belong to their machines."""
        pods = (pod for pod in self._cluster.list_objects(PODS) if pod["spec"].get("nodeName") == name)
        owners = (pod["metadata"].get("ownerReferences") or () for pod in pods)
        return any(not any(one["kind"] == "DaemonSet" for one in found) for found in owners)

    def _announced_shutdown_seconds(self, name: str) -> float:
        """For how long the machine has said that it goes down; what a clock that is wrong says counts for nothing."""
        cluster = self._cluster
        stored = cluster.plane.server.store.get(StorageKey("nodeshutdowns.lastcall.dev", "", name))
        if stored is None or cluster.hosts[name].clock.skew:
            return 0.0
        word = msgspec.json.decode(stored.data, type=WatchedShutdown)
        status, same = word.status, word.spec.boot_id == cluster.hosts[name].profile.boot_id
        if not same or not status.deadline_time or status.outcome == ShutdownOutcome.CANCELLED.value:
            return 0.0
        return max(0.0, datetime.fromisoformat(status.deadline_time).timestamp() - cluster.clock.wall())
