"""The parts of a simulated cluster before anything runs: control plane, storage, machines, and the truth about them."""

import functools
import math
from collections.abc import Callable, Mapping

from lastcall.adapters.kube.resources import (
    LEASES,
    ApiResource,
    Object,
    dict_resource,
)
from lastcall.graceful.config import AgentConfig
from lastcall.model.pods import Pod
from lastcall.names import AGENT_CONFIGURATION
from lastcall.ports.node import Clock
from lastcall_lab.apiserver.admission.node_restriction import is_restricted_label
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.control_plane import identities
from lastcall_lab.controllers.runner.rate_limit import RateLimit
from lastcall_lab.fakes.actor_runtime import ContainerScript
from lastcall_lab.kubelet.base.settings import NodeProfile
from lastcall_lab.machines.power import LabMachine, NetworkCable
from lastcall_lab.simulation import manifests
from lastcall_lab.simulation.cluster_health import ClusterHealth
from lastcall_lab.simulation.control_plane import SimulatedControlPlane
from lastcall_lab.simulation.deletion_log import report_deletions
from lastcall_lab.simulation.heartbeats import NodeHeartbeat
from lastcall_lab.simulation.machine.cables import ObservedCable
from lastcall_lab.simulation.machine.host import SimulatedHost, SimulatedSite
from lastcall_lab.simulation.machine.host_beside_kubelet import HostBesideKubelet
from lastcall_lab.simulation.machine.watchdogs import create_watchdogs
from lastcall_lab.simulation.network_faults import FaultInjector
from lastcall_lab.simulation.object_log import record_objects
from lastcall_lab.simulation.readiness_log import report_readiness
from lastcall_lab.simulation.recorded_cluster.container_behaviour import (
    Faults,
    container_behaviour,
    container_faults,
)
from lastcall_lab.simulation.recorded_cluster.workloads import workload_key
from lastcall_lab.simulation.scenario import (
    NodeGroup,
    Scenario,
    ScenarioShutdownManager,
    ScenarioWorkload,
    ScenarioWorkloadKind,
)
from lastcall_lab.simulation.seeds import random_of
from lastcall_lab.simulation.truth import Truth
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_store import InMemoryVolumes

LOOK_SECONDS = 0.5
"""Between two checks of a condition that is waited for."""

_HOST_NAME = "kubernetes.io/hostname"


class SimulatedEnvironment:
    """Everything that a scenario describes, switched off; ``SimulatedCluster`` starts it.

    ``seed`` decides everything that the scenario leaves open; ``authorization`` is the API server's.
    """

    def __init__(
        self,
        scenario: Scenario,
        clock: Clock,
        seed: str,
        *,
        authorization: AuthorizationMode = AuthorizationMode.ALWAYS_ALLOW,
    ) -> None:
        self.scenario = scenario
        self.clock = clock
        self.seed = seed
        self.random = random_of(seed, "scenario")
        self.truth = Truth(clock)
        self.shelf = InMemoryVolumes()
        self.storage = Storage(self.shelf, clock)
        self.weather = FaultInjector(clock, seed, self.truth.record_fault)
        self.weather.listed_old = self.truth.record_old_list
        pace = RateLimit(scenario.qps, scenario.burst)
        self.plane = SimulatedControlPlane(clock, seed, self.storage, self.weather, pace, authorization)
        self.standing = ClusterHealth(self.plane.server.store)
        report_deletions(self.plane.server.store, self.truth.record_termination_request)
        report_readiness(self.plane.server.store, self.truth.record_notice)
        if scenario.manager is ScenarioShutdownManager.BESIDE_KUBELET:
            record_objects(self.plane.server.store, self.truth)
            self.weather.changed.append(lambda: self.truth.record_network(clear=self.weather.is_clear))
        self.machines: dict[str, LabMachine] = {}
        self.hosts: dict[str, SimulatedHost] = {}
        self.labels: dict[str, Mapping[str, str]] = {}
        self._workloads = {(one.namespace, one.name): one for one in scenario.workloads}
        recorded = scenario.recorded.objects if scenario.recorded else ()
        pods = [one for one in recorded if one["kind"] == "Pod"]
        self._faults: Faults = {pod["metadata"]["uid"]: found for pod in pods if (found := container_faults(pod))}
        self._site = SimulatedSite(
            clock=clock,
            seed=seed,
            storage=self.storage,
            truth=self.truth,
            config=scenario.agent or AgentConfig(kind=AGENT_CONFIGURATION),
            behave=self._container_behaviour,
            manager=scenario.manager,
            boot=scenario.boot,
            propagation=scenario.propagation,
            records=scenario.failover is not None,
        )
        self.watchdogs = create_watchdogs(scenario, seed, self.truth)
        for group in scenario.nodes:
            for number in range(group.count):
                self._add_machine(group, number)

    def _add_machine(self, group: NodeGroup, number: int) -> None:
        name = group.node_names[number]
        domains = {label: values[number % len(values)] for label, values in group.domains.items()}
        self.labels[name] = {**group.labels, **domains}
        index = len(self.machines)
        cable = ObservedCable(self.plane.transport_for(identities.kubelet_identity(name), name))

        def profile(boot_id: str) -> NodeProfile:
            address = f"10.{index // 65536 % 256}.{index // 256 % 256}.{index % 256}"
            return NodeProfile(
                name=name,
                address=group.address or address,
                number=index,
                boot_id=boot_id,
                labels=_kubelet_labels(self.labels[name], numbered=group.numbered),
                capacity=group.capacity,
                architecture=group.architecture,
            )

        agent = NetworkCable(self.plane.transport_for(identities.agent_identity(name), name), trunk=cable)
        beside = self.scenario.manager is ScenarioShutdownManager.BESIDE_KUBELET
        kind = HostBesideKubelet if beside else SimulatedHost
        host = self.hosts[name] = kind(profile, name, self._site, cable, agent, group.delay_limit)
        heartbeat = host.renewals = NodeHeartbeat(
            name,
            self.plane.heartbeats,
            clock=host.clock,
            clear=lambda: self.weather.is_clear and not cable.cut and not self.scenario.failover,
        )
        if isinstance(host, HostBesideKubelet):
            host.own = NetworkCable(self.plane.transport_for(identities.kubelet_identity(name), name), trunk=cable)
            host.kubelet_ended = heartbeat.end
        cable.changed = host.clock.jumped = heartbeat.disturb
        self.weather.changed.append(heartbeat.disturb)
        machine = self.machines[name] = LabMachine(name, host, cable)
        machine.on_fault = lambda fault: self.truth.record_machine_fault(name, fault)
        if self.watchdogs:
            reach = NetworkCable(self.plane.transport_for(identities.agent_identity(name), name), trunk=cable)
            host.watchdog = self.watchdogs.add_machine(machine, reach, host.clock)

    def _container_behaviour(self, pod: Pod, container: str, attempt: int) -> ContainerScript:
        workload = self.workload_of(pod)
        if self.scenario.recorded:
            return container_behaviour(
                pod, container, workload, self._faults.get(pod.metadata.uid, {}).get(container, "")
            )
        if workload is None:
            return ContainerScript(takes=1.0, ready_after=1.0, after_term=1.0)
        return ContainerScript(
            takes=workload.starts,
            ready_after=workload.ready,
            hook=workload.pre_stop,
            after_term=workload.ends,
            lives=workload.lives if workload.kind is ScenarioWorkloadKind.JOB else math.inf,
        )

    def workload_of(self, pod: Pod) -> ScenarioWorkload | None:
        """The scenario's workload that a pod belongs to."""
        if self.scenario.recorded:
            namespace, _, name = workload_key(pod, self.scenario.recorded.members).partition("/")
            return self._workloads.get((namespace, name))
        return self._workloads.get((pod.metadata.namespace, (pod.metadata.labels or {}).get(manifests.LABEL, "")))

    async def create(self, obj: Object) -> Object:
        """Creates an object of any built-in kind."""
        kind = _resources_by_kind()[obj["apiVersion"], obj["kind"]]
        made: Object = await self.plane.admin.create(kind, obj, namespace=obj["metadata"].get("namespace", ""))
        return made

    def list_objects(self, kind: ApiResource[Object]) -> list[Object]:
        """All objects of a resource as the store has them, regardless of network faults."""
        if kind is LEASES:
            self.plane.heartbeats.write_to_store()
        qualified = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
        return [stored.to_object() for stored in self.plane.server.store.objects(qualified)]

    async def wait_until(self, condition: Callable[[], bool], seconds: float = 3600.0) -> None:
        """Returns when the condition holds. TimeoutError if it does not within ``seconds``."""
        end = self.clock.boottime() + seconds
        while not condition():
            if self.clock.boottime() >= end:
                raise TimeoutError(f"it has not come to that within {seconds:g} s")
            await self.clock.sleep(LOOK_SECONDS)

    def are_nodes_ready(self) -> bool:
        """Every machine has a node that is ready."""
        return len(self.standing.ready_boots(self.machines)) == len(self.machines)

    def is_complete(self) -> bool:
        """Every workload has all its desired pods ready, and none is terminating."""
        return self.standing.is_complete


def _kubelet_labels(labels: Mapping[str, str], *, numbered: bool) -> Mapping[str, str]:
    """Those that its kubelet says; of a node that has its labels already, the one on which they must agree."""
    return {
        label: value
        for label, value in labels.items()
        if (not is_restricted_label(label) if numbered else label == _HOST_NAME)
    }


@functools.cache
def _resources_by_kind() -> Mapping[tuple[str, str], ApiResource[Object]]:
    return {
        (one.api_version, one.kind): dict_resource(one.group, one.version, one.plural)
        for one in built_in_resources()
        if not one.stored_as
    }
