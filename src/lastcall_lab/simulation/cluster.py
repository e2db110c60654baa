"""A whole cluster in virtual time: starts the control plane, the machines and the failover controller."""

import copy
from collections.abc import Iterator, Mapping, Sequence

from lastcall.adapters.kube.resources import (
    CSI_NODES,
    NODES,
    STORAGE_CLASSES,
    Object,
    dict_resource,
)
from lastcall.ports.node import Clock
from lastcall_lab.apiserver.admission.node_restriction import is_restricted_label
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.machines.power import PowerSwitch
from lastcall_lab.simulation import manifests
from lastcall_lab.simulation.drains.simulated_drains import SimulatedDrains
from lastcall_lab.simulation.environment import SimulatedEnvironment
from lastcall_lab.simulation.failover.simulated_failover import SimulatedFailover
from lastcall_lab.simulation.guards.simulated_guards import SimulatedGuards
from lastcall_lab.simulation.recorded_cluster.loader import load_cluster
from lastcall_lab.simulation.scenario import Scenario
from lastcall_lab.simulation.seeds import random_of
from lastcall_lab.simulation.steady_state import create_steady_state
from lastcall_lab.volumes import csi_objects as volumes

POWER_ON_SECONDS = 10.0
"""Within which all machines are switched on: the time from one heartbeat of a kubelet to its next."""

_SERVICE_ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
_DRIVERS = dict_resource("storage.k8s.io", "v1", "csidrivers")


class SimulatedCluster(SimulatedEnvironment):
    """Call ``start`` first. ``seed`` decides what the scenario leaves open; ``authorization`` is the API server's."""

    def __init__(
        self,
        scenario: Scenario,
        clock: Clock,
        seed: str,
        *,
        authorization: AuthorizationMode = AuthorizationMode.ALWAYS_ALLOW,
    ) -> None:
        super().__init__(scenario, clock, seed, authorization=authorization)
        self.failing_over = SimulatedFailover(self)
        self.guards = SimulatedGuards(self)
        self.drains = SimulatedDrains(self.plane, self.clock, self.truth, self.seed, self.guards)

    async def start(self) -> None:
        """Returns when everything runs. TimeoutError if that takes longer than an hour."""
        if recorded := self.scenario.recorded:
            await load_cluster(self, copy.deepcopy(recorded.objects), recorded.away)
        if self.watchdogs:
            by_role = self.plane.server.authorizer.mode is AuthorizationMode.RBAC
            await self.watchdogs.create_objects(self.plane.admin, rights=by_role)
        if not recorded:
            await self._start_fresh()
        if self.watchdogs:
            await self.wait_until(self.watchdogs.are_armed)
        await self.failing_over.start()
        await self.guards.start()

    async def _start_fresh(self) -> None:
        self.plane.start_controllers()
        for kind, obj in ((STORAGE_CLASSES, volumes.storage_class()), (_DRIVERS, volumes.csi_driver())):
            await self.plane.admin.create(kind, obj)
        if self.scenario.settled:
            await self._create_settled()
        await self._switch_on_machines()
        if not self.scenario.settled:
            await self._create_objects()
        await self.wait_until(self.is_complete)

    async def _create_settled(self) -> None:
        """Creates the steady state before the controllers start."""
        await self.wait_until(lambda: bool(self.list_objects(_SERVICE_ACCOUNTS)))
        self.plane.manager.kill()
        await self._create_objects()
        await create_steady_state(self)
        self.plane.start_controllers()

    async def _switch_on_machines(self) -> None:
        """One after the other, at random moments, so that the machines' heartbeats do not coincide."""
        random, began = random_of(self.seed, "power on"), self.clock.boottime()
        for delay, name in sorted((random.uniform(0.0, POWER_ON_SECONDS), name) for name in self.machines):
            await self.clock.sleep(began + delay - self.clock.boottime())
            await self.machines[name].turn(PowerSwitch.ON)
        await self.wait_until(self.are_nodes_ready)
        for name in self.machines:
            node = {"metadata": {"labels": _administrator_labels(self.labels[name])}}
            uid = (await self.plane.admin.patch(NODES, name, node))["metadata"]["uid"]
            await self.plane.admin.create(CSI_NODES, volumes.csi_node(name, uid))

    async def _create_objects(self) -> None:
        for obj in (*manifests.namespace_objects(self.scenario), *self.scenario.objects):
            await self.create(obj)
        for workload in self.scenario.workloads:
            for obj in manifests.workload_objects(workload):
                await self.create(obj)

    def select_machines(self, selectors: Sequence[str]) -> list[str]:
        """The machines that an event's selectors mean, in order."""
        found: dict[str, None] = {}
        for selector in selectors:
            found |= dict.fromkeys(self._match_selector(selector))
        return [name for name in self.machines if name in found]

    def _match_selector(self, selector: str) -> Iterator[str]:
        names = list(self.machines)
        if selector in self.machines:
            yield selector
        elif selector == "all nodes":
            yield from names
        elif selector == "half of the nodes":
            yield from self.random.sample(names, len(names) // 2)
        else:
            label, _, value = selector.partition(" ")
            yield from (name for name in names if self.labels[name].get(label) == value)


def _administrator_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Those that a kubelet may not say of itself: an administrator puts them on."""
    return {label: value for label, value in labels.items() if is_restricted_label(label)}


def condition_status(obj: Object, kind: str) -> str:
    """The status of one of its conditions; empty if it has none of that type."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((str(one["status"]) for one in conditions if one["type"] == kind), "")
