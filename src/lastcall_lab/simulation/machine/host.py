"""A machine in virtual time: the lab's kubelet and lastcall's agent, unchanged, on actors and an imagined logind.

Kubelet and agent are one process, as on every node of the lab; the holder of the lock, logind, the runtime and the
storage are others', and outlive it.
"""

import math
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.node_shutdown_recorder import NodeShutdownRecorder, RecordingNodeFace
from lastcall.adapters.kube.resources import Object
from lastcall.adapters.kube.transport import Transport
from lastcall.graceful.agent import AgentPorts, AgentStatus, ShutdownAgent
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.shutdown.journal_recorder import Listener
from lastcall.model.pods import Pod
from lastcall.ports.node import Clock, NodeFace, PodRuntime
from lastcall_lab.fakes.actor_runtime import ActorRuntime, ContainerScript, Delivery, Script
from lastcall_lab.fakes.delay_limit_files import FakeLimitFiles
from lastcall_lab.fakes.lock_keeper import FakeLockHolder, FakeLockKeeper
from lastcall_lab.kubelet.base.settings import KubeletSettings, NodeProfile
from lastcall_lab.kubelet.cluster.lease_renewals import LeaseRenewals
from lastcall_lab.kubelet.node.kubelet import LabKubelet
from lastcall_lab.kubelet.node.kubelet_shutdown_manager import KubeletShutdownManager
from lastcall_lab.kubelet.node.node_face import KubeletNodeFace
from lastcall_lab.simulation.clocks import NodeClock
from lastcall_lab.simulation.machine.directories import InMemoryPodDirectories
from lastcall_lab.simulation.machine.disk import SimulatedDisk
from lastcall_lab.simulation.machine.logind import SimulatedHostLogind, limit_files
from lastcall_lab.simulation.machine.volume_driver import FlushingDriver
from lastcall_lab.simulation.machine.watchdogs import SimulatedWatchdog
from lastcall_lab.simulation.recorded_cluster import static_pods
from lastcall_lab.simulation.scenario import ScenarioShutdownManager
from lastcall_lab.simulation.seeds import random_of
from lastcall_lab.simulation.truth import Truth
from lastcall_lab.virtual import VirtualProcess
from lastcall_lab.volumes.storage import Storage


@dataclass(frozen=True, kw_only=True)
class SimulatedSite:
    """What the machines of one cluster share. ``behave`` tells what the containers of a pod do."""

    clock: Clock
    seed: str
    storage: Storage
    truth: Truth
    config: AgentConfig
    behave: Script
    manager: ScenarioShutdownManager = ScenarioShutdownManager.LASTCALL
    boot: float = 30.0
    propagation: float = 0.5
    """How many seconds after the API server the nodes' proxies know of endpoints."""
    settings: KubeletSettings = field(default_factory=KubeletSettings)
    records: bool = False
    """Whether agents say in the API that their nodes go down (``NodeShutdown``), as they do in every real cluster."""


class SimulatedHost:
    """``power.Host`` whose pods are actors. ``reach`` is the kubelet's way to the API server, ``agent`` the agent's.

    ``delay_limit`` is what others let logind wait, in seconds; 0: nobody limits it.
    """

    def __init__(
        self,
        profile: Callable[[str], NodeProfile],
        name: str,
        site: SimulatedSite,
        reach: Transport,
        agent: Transport,
        delay_limit: float = 0.0,
    ) -> None:
        self.name = name
        self._profile = profile
        self._site = site
        self._random = random_of(site.seed, name)
        self._client = Client(reach, manager="kubelet")
        self._agent_client = Client(agent, manager="lastcall-agent")
        self._directories = InMemoryPodDirectories()
        self._boots = 0
        self._on = False
        self.process = VirtualProcess(name)
        self._keeper: FakeLockKeeper | None = None
        self.clock = NodeClock(site.clock)
        self.disk = SimulatedDisk(random_of(site.seed, f"{name}/disk"), site.clock)
        self.runtime = ActorRuntime(self.clock, script=self._container_behaviour, node=name)
        self.logind = self._new_logind(limit_files(delay_limit))
        self.holder = FakeLockHolder(self.logind, self.clock)
        self.troubles: Counter[str] = Counter()
        """How many events that last give it each kind of trouble."""
        self.renewals: LeaseRenewals | None = None
        """Who renews the node's lease, beside its kubelet."""
        self.kubelet: LabKubelet | None = None
        self.agent: ShutdownAgent | None = None
        self.watchdog: SimulatedWatchdog | None = None
        """That its agent keeps, if it is to keep one."""
        self.static_pods: list[Object] = []
        """Those that its kubelet has from files."""
        site.truth.watch_runtime(name, self.runtime)

    @property
    def profile(self) -> NodeProfile:
        """Of this boot; before the first one, of that."""
        boot_id = uuid.uuid5(uuid.NAMESPACE_OID, f"{self._site.seed}/{self.name}/{max(1, self._boots)}")
        return self._profile(str(boot_id))

    def place_running_pod(self, pod: Pod, only: Collection[str] | None = None) -> str:
        """A pod that runs, and is ready, although nobody has started it here; its address.

        ``only``: not all of its containers do. They have run for ever, by what the truth says of them.
        """
        names = [one.name for one in (*pod.spec.containers, *(pod.spec.init_containers or ()))]
        scripts = {name: replace(self._container_behaviour(pod, name, 0), ready_after=0.0) for name in names}
        live = self.runtime.add(pod, scripts, only=only)
        for name in live.containers:
            if scripts[name].healthy_for:
                self.runtime.on_delivery(Delivery(-math.inf, pod.metadata.uid, name, "start"))
        return live.pod.status.pod_ip

    # -- power.Host ----------------------------------------------------------------------------------------------------

    async def boot(self) -> None:
        """After ``site.boot`` seconds the kubelet starts, as it does when an operating system has come up."""
        self._boots += 1
        self._on = True
        self.logind = self._new_logind(self.logind.files)
        self.holder = FakeLockHolder(self.logind, self.clock)
        self._site.truth.record_power_on(self.name)
        if self._boots > 1:
            self.process = VirtualProcess(self.name)
            self.process.start(self._start_after_boot(self._boots), f"{self.name}: boot")
        else:
            await self.start_kubelet()

    def _new_logind(self, files: FakeLimitFiles) -> SimulatedHostLogind:
        truth, name = self._site.truth, self.name
        logind = SimulatedHostLogind(self.clock, files=files)
        logind.begun = lambda granted, locked: truth.record_shutdown(name, granted, locked=locked)
        logind.forgotten = lambda: truth.record_cancel(name)
        logind.goes_down = lambda: truth.record_going_down(name) if self._on else None
        return logind

    async def _start_after_boot(self, boot: int) -> None:
        await self._site.clock.sleep(self._site.boot)
        if boot == self._boots:
            await self.start_kubelet()

    async def die(self) -> None:
        """The power is gone: nothing of it runs on, and nobody is told."""
        self._on = False
        self.process.kill()
        self.holder.drop()
        self.runtime.pull_power()
        self.disk.lose_power()
        if self.watchdog:
            self.watchdog.on_power_off()
        self._site.truth.record_power_off(self.name)
        self._site.storage.drop_mounts(self.name)

    async def press(self) -> bool:
        """The power button; True when logind has systemd go down."""
        logind = self.logind
        if not logind.is_preparing:
            await logind.power_off()
        return await logind.wait_until_settled()

    async def call_off_shutdown(self) -> bool:
        """As ``shutdown -c`` does with systemd 257."""
        if await self.logind.starts():
            return False
        await self.logind.cancel_schedule()
        return True

    async def cut_storage(self, *, cut: bool) -> None:
        """Every write to a volume fails, or works again."""
        await (self._site.storage.cut(self.name) if cut else self._site.storage.mend(self.name))

    async def stop_kubelet(self) -> None:
        """SIGKILL: kubelet and agent end in the middle of whatever they do."""
        self.process.kill()

    async def start_kubelet(self) -> None:
        """A new life of both. AssertionError if the last one goes on: one machine never has two kubelets."""
        assert self.kubelet is None, f"{self.name} has a kubelet already"
        await self.start_agent()

    async def start_agent(self) -> None:
        """A new life of the process that ``kill_agent`` ends: the kubelet is in it, too."""
        self.process = VirtualProcess(self.name, on_death=self._on_programs_end)
        self._site.truth.record_agent_start(self.name)
        self.process.start(self._run_programs(), f"{self.name}: kubelet and agent")

    def kill_kubelet(self) -> None:
        """As ``stop_kubelet``: they are one process here."""
        self.process.kill()

    def request_kubelet_start(self) -> None:
        """Somebody starts the kubelet's unit; nothing if it runs."""

    # -- within --------------------------------------------------------------------------------------------------------

    def _on_programs_end(self) -> None:
        self.kubelet = None
        self._release_agent_lock()

    def _release_agent_lock(self) -> None:
        """The kernel closes the agent's copy of the lock; the holder's stays."""
        if self._keeper:
            self._keeper.die()
        if self.watchdog:
            self.watchdog.on_agent_death()
        self._keeper = self.agent = None
        if self._on:
            self._site.truth.record_agent_kill(self.name)

    async def _run_programs(self) -> None:
        """In the process: what is made here belongs to it."""
        kubelet = self.kubelet = self._new_kubelet()
        if self.static_pods:
            making = static_pods.create_static_pods(self.static_pods, self._client, self.clock)
            self.process.start(making, f"{self.name}: static pods")
        if self._site.manager is ScenarioShutdownManager.LASTCALL:
            face = KubeletNodeFace(kubelet, self.clock)
            face.hold_pods()
            agent = self._new_agent(face, self.runtime, [face.hear], partial(self._on_agent_status, face))
            if self.watchdog:
                self.watchdog.start_keeper(self.process, kubelet.profile)
            self.process.start(agent.run(), f"{self.name}: agent")
        elif self._site.manager is ScenarioShutdownManager.KUBELET:
            self.process.start(self._kubelet_shutdown_manager(kubelet).run(), f"{self.name}: shutdown manager")
        await kubelet.run()

    def _new_kubelet(self) -> LabKubelet:
        return LabKubelet(
            self.profile,
            self.runtime,
            client=self._client,
            clock=self.clock,
            random=self._random,
            directories=self._directories,
            volumes=FlushingDriver(self._site.storage, self.name, self._client, self.clock),
            settings=self._site.settings,
            renewals=self.renewals,
        )

    def _new_agent(
        self,
        face: NodeFace,
        runtime: PodRuntime,
        listeners: Sequence[Listener],
        on_status: Callable[[AgentStatus], None] = lambda _: None,
    ) -> ShutdownAgent:
        self._keeper = FakeLockKeeper(self.holder)
        shutdowns = NodeShutdownRecorder(lambda: (self._agent_client,), self.name, self.clock)
        if self._site.records:
            self.process.start(shutdowns.run(), f"{self.name}: shutdown records")
        self.agent = ShutdownAgent(
            self._site.config,
            AgentPorts(
                clock=self.clock,
                logind=self.logind,
                keeper=self._keeper,
                limit_files=self.logind.files,
                runtime=runtime,
                node=RecordingNodeFace(face, shutdowns) if self._site.records else face,
                journals=self.disk,
            ),
            node_name=self.name,
            boot_id=self.profile.boot_id,
            listeners=[*listeners, *([shutdowns.record_event] if self._site.records else [])],
            on_status=on_status,
        )
        return self.agent

    def _on_agent_status(self, face: KubeletNodeFace, status: AgentStatus) -> None:
        face.first_look(status)
        if self.watchdog:
            self.watchdog.pass_agent_status(status)

    def _kubelet_shutdown_manager(self, kubelet: LabKubelet) -> KubeletShutdownManager:
        return KubeletShutdownManager(
            kubelet,
            self._site.config.groups,
            logind=self.logind,
            files=self.logind.files,
            release=self.logind.close,
            clock=self.clock,
        )

    def _container_behaviour(self, pod: Pod, container: str, attempt: int) -> ContainerScript:
        self._site.truth.record_start_order(self.name, pod, container)
        return self._site.behave(pod, container, attempt)
