"""A machine in virtual time as in a real cluster: kubelet and agent are two processes, and systemd has the kubelet's unit."""

from collections.abc import Callable

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.node_objects import KubeNodeObjects
from lastcall.adapters.kube.pod_endpoints import KubePodEndpoints
from lastcall.adapters.kube.pod_owners import KubePodOwners
from lastcall.adapters.kube.transport import Transport
from lastcall.adapters.systemd.kubelet_service import KubeletService
from lastcall.aio import wait_first
from lastcall.graceful.cluster.cluster_node_face import ClusterNodeFace
from lastcall_lab.simulation.machine.host import SimulatedHost
from lastcall_lab.simulation.machine.node_volumes import SimulatedNodeVolumes
from lastcall_lab.simulation.machine.pod_sources import DescribedRuntime, SimulatedPodSources
from lastcall_lab.simulation.machine.service_manager import KUBELET_UNIT, SimulatedServiceManager
from lastcall_lab.virtual import VirtualProcess


class _SimulatedProxy:
    """``ports.cluster.ProxyLatency``: a proxy follows each change as fast as the scenario says."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def read_latency(self) -> float | None:
        return self._seconds


class HostBesideKubelet(SimulatedHost):
    """``process`` is the agent's alone. ``own`` is its way to the API server with the kubelet's identity."""

    own: Transport
    kubelet_ended: Callable[[], None] = staticmethod(lambda: None)
    """Hears that the kubelet does not renew the node's Lease any more."""
    _systemd: SimulatedServiceManager | None = None

    # -- power.Host ----------------------------------------------------------------------------------------------------

    async def die(self) -> None:
        """As ever."""
        self._end_systemd()
        await super().die()

    async def stop_kubelet(self) -> None:
        """Everything hangs: both end, and nobody starts them."""
        self.process.kill()
        self._end_systemd()

    async def start_kubelet(self) -> None:
        """Both, as after a boot."""
        assert self.kubelet is None, f"{self.name} has a kubelet already"
        systemd = self._systemd = SimulatedServiceManager(
            self.name,
            self._site.clock,
            run_kubelet=self._run_kubelet,
            check_bus=self.logind.check_bus,
            tell=self._on_kubelet_change,
        )
        systemd.request_start()
        await self.start_agent()

    async def start_agent(self) -> None:
        """Its unit starts it; if a boot was cut off there is no systemd yet, and both start."""
        if self._systemd is None:
            await self.start_kubelet()
            return
        self.process = VirtualProcess(f"{self.name}/agent", on_death=self._release_agent_lock)
        self._site.truth.record_agent_start(self.name)
        self.process.start(self._run_agent(self.process), f"{self.name}: agent")

    def kill_kubelet(self) -> None:
        """SIGKILL; its unit starts it again."""
        if self._systemd:
            self._systemd.kill_kubelet()

    def request_kubelet_start(self) -> None:
        """Somebody starts its unit."""
        if self._systemd:
            self._systemd.request_start()

    # -- within --------------------------------------------------------------------------------------------------------

    def _end_systemd(self) -> None:
        systemd, self._systemd, self.kubelet = self._systemd, None, None
        if systemd:
            systemd.end()

    def _run_kubelet(self) -> VirtualProcess:
        process = VirtualProcess(self.name)
        process.call(self._start_kubelet_process, process)
        return process

    def _start_kubelet_process(self, process: VirtualProcess) -> None:
        kubelet = self.kubelet = self._new_kubelet()
        process.start(kubelet.run(), f"{self.name}: kubelet")

    def _on_kubelet_change(self, what: str) -> None:
        if what != "kubelet started":
            self.kubelet = None
            self.kubelet_ended()
        self._site.truth.record_machine_event(self.name, what)

    async def _run_agent(self, process: VirtualProcess) -> None:
        """In the process: what is made here belongs to it."""
        systemd = self._systemd
        assert systemd
        client = Client(self.own, manager="lastcall-agent")
        sources = SimulatedPodSources(client, self.name, disk=self.disk, clock=self.clock, random=self._random)
        face = ClusterNodeFace(
            KubeletService(KUBELET_UNIT, self.clock, systemd.open),
            KubeNodeObjects(lambda: client, self.name, self.clock),
            KubePodEndpoints(lambda: self._agent_client, self.clock, self._random),
            _SimulatedProxy(self._site.propagation),
            KubePodOwners(lambda: self._agent_client),
            volumes=SimulatedNodeVolumes(self._site.storage, self.name, self._directories, self.clock),
            find_pod=sources.find_pod,
            boot_id=self.profile.boot_id,
            traffic=self._site.config.traffic,
            clock=self.clock,
            observe_withdrawal=lambda _: None,
        )
        agent = self._new_agent(
            face,
            DescribedRuntime(self.runtime, self.name, sources.current_sources),
            [sources.record_event],
        )
        await wait_first(agent.run(), sources.run())
