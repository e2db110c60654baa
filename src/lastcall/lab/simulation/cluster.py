"""A whole cluster in virtual time: control plane, storage, machines with their programs, and the truth about them."""

import copy
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from lastcall.adapters.kube.resources import (
    CSI_NODES,
    LEASES,
    NODES,
    STORAGE_CLASSES,
    Object,
    Resource,
    resource,
)
from lastcall.graceful.config import AgentConfig
from lastcall.lab import identities
from lastcall.lab.actors import Behaviour
from lastcall.lab.apiserver.admission.node_restriction import is_forbidden
from lastcall.lab.apiserver.authorization.authorizer import Authorization
from lastcall.lab.apiserver.catalog import built_in
from lastcall.lab.controllers.pace import Pace
from lastcall.lab.kubelet.settings import Profile
from lastcall.lab.power import Cable, Machine, Switch
from lastcall.lab.simulation import manifests
from lastcall.lab.simulation.asking import listen
from lastcall.lab.simulation.failover.failing_over import FailingOver
from lastcall.lab.simulation.heartbeats import NodeHeartbeat
from lastcall.lab.simulation.machine.cables import TellingCable
from lastcall.lab.simulation.machine.host import SimulatedHost, Site
from lastcall.lab.simulation.machine.watchdogs import watchdogs_of
from lastcall.lab.simulation.noticing import notice
from lastcall.lab.simulation.plane import Plane
from lastcall.lab.simulation.scenario import Kind, NodeGroup, Scenario, Workload
from lastcall.lab.simulation.seeds import random_of
from lastcall.lab.simulation.settling import settle
from lastcall.lab.simulation.standing import Standing
from lastcall.lab.simulation.state.behaving import Faults, behaviour, faults
from lastcall.lab.simulation.state.putting import put
from lastcall.lab.simulation.state.workloads import key_of
from lastcall.lab.simulation.truth import Truth
from lastcall.lab.simulation.weather import Weather
from lastcall.lab.volumes import objects as volumes
from lastcall.lab.volumes.shelf import Imagined
from lastcall.lab.volumes.storage import Storage
from lastcall.model.pods import Pod
from lastcall.names import AGENT_CONFIGURATION
from lastcall.ports import Clock

LOOK_SECONDS = 0.5
"""Between two looks at whether it has come to something."""

POWER_ON_SECONDS = 10.0
"""Within which all machines are switched on: the time from one heartbeat of a kubelet to its next."""

_SERVICE_ACCOUNTS = resource("", "v1", "serviceaccounts")
_HOST_NAME = "kubernetes.io/hostname"
_DRIVERS = resource("storage.k8s.io", "v1", "csidrivers")


class Cluster:
    """``begin`` first. ``seed`` decides everything that the scenario leaves open; ``authorization`` is the API server's."""

    def __init__(
        self,
        scenario: Scenario,
        clock: Clock,
        seed: str,
        *,
        authorization: Authorization = Authorization.ALWAYS_ALLOW,
    ) -> None:
        self.scenario = scenario
        self.clock = clock
        self.seed = seed
        self.random = random_of(seed, "scenario")
        self.truth = Truth(clock)
        self.shelf = Imagined()
        self.storage = Storage(self.shelf, clock)
        self.weather = Weather(clock, seed, self.truth.struck)
        pace = Pace(scenario.qps, scenario.burst)
        self.plane = Plane(clock, seed, self.storage, self.weather, pace, authorization)
        self.standing = Standing(self.plane.server.store)
        listen(self.plane.server.store, self.truth.wanted_ended)
        notice(self.plane.server.store, self.truth.noticed)
        self.machines: dict[str, Machine] = {}
        self.hosts: dict[str, SimulatedHost] = {}
        self.labels: dict[str, Mapping[str, str]] = {}
        self.failing_over = FailingOver(self)
        self._workloads = {(one.namespace, one.name): one for one in scenario.workloads}
        recorded = scenario.recorded.objects if scenario.recorded else ()
        pods = [one for one in recorded if one["kind"] == "Pod"]
        self._faults: Faults = {pod["metadata"]["uid"]: found for pod in pods if (found := faults(pod))}
        self._site = Site(
            clock=clock,
            seed=seed,
            storage=self.storage,
            truth=self.truth,
            config=scenario.agent or AgentConfig(kind=AGENT_CONFIGURATION),
            behave=self._behave,
            manager=scenario.manager,
            boot=scenario.boot,
            records=scenario.failover is not None,
        )
        self.watchdogs = watchdogs_of(scenario, seed, self.truth)
        for group in scenario.nodes:
            for number in range(group.count):
                self._add(group, number)

    # -- how it comes to be --------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Everything runs when this returns; TimeoutError if it does not come to that in an hour."""
        if recorded := self.scenario.recorded:
            await put(self, copy.deepcopy(recorded.objects), recorded.away)
        if self.watchdogs:
            by_role = self.plane.server.authorizer.mode is Authorization.RBAC
            await self.watchdogs.begin(self.plane.admin, rights=by_role)
        if not recorded:
            await self._begin()
        if self.watchdogs:
            await self.until(self.watchdogs.ready)
        await self.failing_over.begin()

    async def _begin(self) -> None:
        self.plane.start_controllers()
        for kind, obj in ((STORAGE_CLASSES, volumes.storage_class()), (_DRIVERS, volumes.csi_driver())):
            await self.plane.admin.create(kind, obj)
        if self.scenario.settled:
            await self._settle()
        await self._come_up()
        if not self.scenario.settled:
            await self._create_all()
        await self.until(self.whole)

    async def _settle(self) -> None:
        """What the controllers would have come to is there when they start."""
        await self.until(lambda: bool(self.all(_SERVICE_ACCOUNTS)))
        self.plane.manager.kill()
        await self._create_all()
        await settle(self)
        self.plane.start_controllers()

    async def _come_up(self) -> None:
        """One after the other, at moments of chance: nowhere do heartbeats of machines fall together."""
        random, began = random_of(self.seed, "power on"), self.clock.boottime()
        for delay, name in sorted((random.uniform(0.0, POWER_ON_SECONDS), name) for name in self.machines):
            await self.clock.sleep(began + delay - self.clock.boottime())
            await self.machines[name].turn(Switch.ON)
        await self.until(self.nodes_ready)
        for name in self.machines:
            node = {"metadata": {"labels": _given_labels(self.labels[name])}}
            uid = (await self.plane.admin.patch(NODES, name, node))["metadata"]["uid"]
            await self.plane.admin.create(CSI_NODES, volumes.csi_node(name, uid))

    async def _create_all(self) -> None:
        for obj in (*manifests.namespaces(self.scenario), *self.scenario.objects):
            await self.create(obj)
        for workload in self.scenario.workloads:
            for obj in manifests.objects(workload):
                await self.create(obj)

    def _add(self, group: NodeGroup, number: int) -> None:
        name = group.names[number]
        domains = {label: values[number % len(values)] for label, values in group.domains.items()}
        self.labels[name] = {**group.labels, **domains}
        index = len(self.machines)
        cable = TellingCable(self.plane.reach(identities.kubelet(name), name))

        def profile(boot_id: str) -> Profile:
            address = f"10.{index // 65536 % 256}.{index // 256 % 256}.{index % 256}"
            return Profile(
                name=name,
                address=group.address or address,
                number=index,
                boot_id=boot_id,
                labels=_own_labels(self.labels[name], numbered=group.numbered),
                capacity=group.capacity,
                architecture=group.architecture,
            )

        agent = Cable(self.plane.reach(identities.agent_on(name), name), trunk=cable)
        host = self.hosts[name] = SimulatedHost(profile, name, self._site, cable, agent, group.delay_limit)
        heartbeat = host.renewals = NodeHeartbeat(
            name,
            self.plane.heartbeats,
            clock=host.clock,
            clear=lambda: self.weather.clear and not cable.cut and not self.scenario.failover,
        )
        cable.changed = host.clock.jumped = heartbeat.disturb
        self.weather.changed.append(heartbeat.disturb)
        machine = self.machines[name] = Machine(name, host, cable)
        machine.on_fault = lambda fault: self.truth.harmed(name, fault)
        if self.watchdogs:
            reach = Cable(self.plane.reach(identities.agent_on(name), name), trunk=cable)
            host.watchdog = self.watchdogs.of(machine, reach, host.clock)

    def _behave(self, pod: Pod, container: str, attempt: int) -> Behaviour:
        workload = self.workload_of(pod)
        if self.scenario.recorded:
            return behaviour(pod, container, workload, self._faults.get(pod.metadata.uid, {}).get(container, ""))
        if workload is None:
            return Behaviour(takes=1.0, ready_after=1.0, after_term=1.0)
        return Behaviour(
            takes=workload.starts,
            ready_after=workload.ready,
            hook=workload.pre_stop,
            after_term=workload.ends,
            lives=workload.lives if workload.kind is Kind.JOB else math.inf,
        )

    def workload_of(self, pod: Pod) -> Workload | None:
        """The scenario's workload that a pod belongs to."""
        if self.scenario.recorded:
            namespace, _, name = key_of(pod, self.scenario.recorded.members).partition("/")
            return self._workloads.get((namespace, name))
        return self._workloads.get((pod.metadata.namespace, (pod.metadata.labels or {}).get(manifests.LABEL, "")))

    # -- verbs ---------------------------------------------------------------------------------------------------------

    async def create(self, obj: Object) -> Object:
        """Any object of a built-in kind."""
        kind = _kinds()[obj["apiVersion"], obj["kind"]]
        made: Object = await self.plane.admin.create(kind, obj, namespace=obj["metadata"].get("namespace", ""))
        return made

    def all(self, kind: Resource[Object]) -> list[Object]:
        """All objects of a resource as the store has them, whatever the weather."""
        if kind is LEASES:
            self.plane.heartbeats.write_down()
        qualified = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
        return [stored.object() for stored in self.plane.server.store.objects(qualified)]

    def chosen(self, selectors: Sequence[str]) -> list[str]:
        """The machines that an event's selectors mean, in order."""
        found: dict[str, None] = {}
        for selector in selectors:
            found |= dict.fromkeys(self._chosen(selector))
        return [name for name in self.machines if name in found]

    def _chosen(self, selector: str) -> Iterator[str]:
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

    # -- how it is -----------------------------------------------------------------------------------------------------

    async def until(self, condition: Callable[[], bool], seconds: float = 3600.0) -> None:
        """TimeoutError if it does not come to that."""
        end = self.clock.boottime() + seconds
        while not condition():
            if self.clock.boottime() >= end:
                raise TimeoutError(f"it has not come to that within {seconds:g} s")
            await self.clock.sleep(LOOK_SECONDS)

    def nodes_ready(self) -> bool:
        """Every machine has a node that is ready."""
        return len(self.standing.boots(self.machines)) == len(self.machines)

    def whole(self) -> bool:
        """Every workload has all the pods that it wants, ready, and none that is to go."""
        return self.standing.whole


def _own_labels(labels: Mapping[str, str], *, numbered: bool) -> Mapping[str, str]:
    """Those that its kubelet says; of a node that has its labels already, the one on which they must agree."""
    return {
        label: value
        for label, value in labels.items()
        if (not is_forbidden(label) if numbered else label == _HOST_NAME)
    }


def _given_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Those that a kubelet may not say of itself: an administrator puts them on."""
    return {label: value for label, value in labels.items() if is_forbidden(label)}


def condition(obj: Object, kind: str) -> str:
    """The status of one of its conditions; empty if it has none of that type."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((str(one["status"]) for one in conditions if one["type"] == kind), "")


@functools.cache
def _kinds() -> Mapping[tuple[str, str], Resource[Object]]:
    return {
        (one.api_version, one.kind): resource(one.group, one.version, one.plural)
        for one in built_in()
        if not one.stored_as
    }
