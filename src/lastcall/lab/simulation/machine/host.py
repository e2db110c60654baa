"""A machine in virtual time: the lab's kubelet and lastcall's agent, unchanged, on actors and an imagined logind.

Kubelet and agent are one process, as on every node of the lab; the holder of the lock, logind, the runtime and the
storage are others', and outlive it.
"""

import math
import uuid
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import Object
from lastcall.adapters.kube.shutdown_records import RecordedFace, ShutdownRecords
from lastcall.adapters.kube.transport import Transport
from lastcall.graceful.agent import Agent, Outside, Status
from lastcall.graceful.config import AgentConfig
from lastcall.lab.actors import ActorRuntime, Behaviour, Delivery, Script
from lastcall.lab.fake_keeper import FakeHolder, FakeKeeper
from lastcall.lab.fake_limit_files import FakeLimitFiles
from lastcall.lab.kubelet.kubelet import Kubelet
from lastcall.lab.kubelet.own_shutdown import ShutdownManager
from lastcall.lab.kubelet.renewals import Renewals
from lastcall.lab.kubelet.settings import Profile, Settings
from lastcall.lab.kubelet.shutdown import KubeletFace
from lastcall.lab.simulation.clocks import NodeClock
from lastcall.lab.simulation.machine.directories import ImaginedDirectories
from lastcall.lab.simulation.machine.disk import Disk
from lastcall.lab.simulation.machine.driver import FlushingDriver
from lastcall.lab.simulation.machine.logind import HostLogind, limited
from lastcall.lab.simulation.machine.watchdogs import HostWatchdog
from lastcall.lab.simulation.scenario import Manager
from lastcall.lab.simulation.seeds import random_of
from lastcall.lab.simulation.state import static_pods
from lastcall.lab.simulation.truth import Truth
from lastcall.lab.virtual import Process
from lastcall.lab.volumes.storage import Storage
from lastcall.model.pods import Pod
from lastcall.ports import Clock


@dataclass(frozen=True, kw_only=True)
class Site:
    """What the machines of one cluster share. ``behave`` tells what the containers of a pod do."""

    clock: Clock
    seed: str
    storage: Storage
    truth: Truth
    config: AgentConfig
    behave: Script
    manager: Manager = Manager.LASTCALL
    boot: float = 30.0
    settings: Settings = field(default_factory=Settings)
    records: bool = False
    """Whether agents say in the API that their nodes go down (``NodeShutdown``), as they do in every real cluster."""


class SimulatedHost:
    """``power.Host`` whose pods are actors. ``reach`` is the kubelet's way to the API server, ``agent`` the agent's.

    ``delay_limit`` is what others let logind wait, in seconds; 0: nobody limits it.
    """

    def __init__(
        self,
        profile: Callable[[str], Profile],
        name: str,
        site: Site,
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
        self._directories = ImaginedDirectories()
        self._boots = 0
        self._on = False
        self.process = Process(name)
        self._keeper: FakeKeeper | None = None
        self.clock = NodeClock(site.clock)
        self.disk = Disk(random_of(site.seed, f"{name}/disk"), site.clock)
        self.runtime = ActorRuntime(self.clock, script=self._behave, node=name)
        self.logind = self._new_logind(limited(delay_limit))
        self.holder = FakeHolder(self.logind, self.clock)
        self.troubles: Counter[str] = Counter()
        """How many events that last give it each kind of trouble."""
        self.renewals: Renewals | None = None
        """Who renews the node's lease, beside its kubelet."""
        self.kubelet: Kubelet | None = None
        self.agent: Agent | None = None
        self.watchdog: HostWatchdog | None = None
        """That its agent keeps, if it is to keep one."""
        self.static_pods: list[Object] = []
        """Those that its kubelet has from files."""
        site.truth.watch_runtime(name, self.runtime)

    @property
    def profile(self) -> Profile:
        """Of this boot; before the first one, of that."""
        boot_id = uuid.uuid5(uuid.NAMESPACE_OID, f"{self._site.seed}/{self.name}/{max(1, self._boots)}")
        return self._profile(str(boot_id))

    def run_already(self, pod: Pod, only: Collection[str] | None = None) -> str:
        """A pod that runs, and is ready, although nobody has started it here; its address.

        ``only``: not all of its containers do. They have run for ever, by what the truth says of them.
        """
        names = [one.name for one in (*pod.spec.containers, *(pod.spec.init_containers or ()))]
        scripts = {name: replace(self._behave(pod, name, 0), ready_after=0.0) for name in names}
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
        self.holder = FakeHolder(self.logind, self.clock)
        self._site.truth.power_on(self.name)
        if self._boots > 1:
            self.process = Process(self.name)
            self.process.start(self._come_up(self._boots), f"{self.name}: boot")
        else:
            await self.start_kubelet()

    def _new_logind(self, files: FakeLimitFiles) -> HostLogind:
        truth, name = self._site.truth, self.name
        logind = HostLogind(self.clock, files=files)
        logind.begun = lambda granted, locked: truth.pressed(name, granted, locked=locked)
        logind.forgotten = lambda: truth.cancelled(name)
        logind.goes_down = lambda: truth.goes_down(name) if self._on else None
        return logind

    async def _come_up(self, boot: int) -> None:
        await self._site.clock.sleep(self._site.boot)
        if boot == self._boots:
            await self.start_kubelet()

    async def die(self) -> None:
        """The power is gone: nothing of it runs on, and nobody is told."""
        self._on = False
        self.process.kill()
        self.holder.drop()
        self.runtime.pull()
        self.disk.lose_power()
        if self.watchdog:
            self.watchdog.switched_off()
        self._site.truth.power_off(self.name)
        self._site.storage.power_lost(self.name)

    async def press(self) -> bool:
        """The power button; True when logind has systemd go down."""
        logind = self.logind
        if not logind.preparing:
            await logind.power_off()
        return await logind.settled()

    async def call_off(self) -> bool:
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
        self.process = Process(self.name, on_death=self._died)
        self._site.truth.agent_started(self.name)
        self.process.start(self._live(), f"{self.name}: kubelet and agent")

    # -- within --------------------------------------------------------------------------------------------------------

    def _died(self) -> None:
        """The kernel closes the agent's copy of the lock; the holder's stays."""
        if self._keeper:
            self._keeper.die()
        if self.watchdog:
            self.watchdog.agent_died()
        self._keeper = self.kubelet = self.agent = None
        if self._on:
            self._site.truth.agent_killed(self.name)

    async def _live(self) -> None:
        """In the process: what is made here belongs to it."""
        kubelet = self.kubelet = self._new_kubelet()
        if self.static_pods:
            making = static_pods.make(self.static_pods, self._client, self.clock)
            self.process.start(making, f"{self.name}: static pods")
        if self._site.manager is Manager.LASTCALL:
            agent = self.agent = self._new_agent(kubelet)
            if self.watchdog:
                self.watchdog.keep(self.process, kubelet.profile)
            self.process.start(agent.run(), f"{self.name}: agent")
        elif self._site.manager is Manager.KUBELET:
            self.process.start(self._own_manager(kubelet).run(), f"{self.name}: shutdown manager")
        await kubelet.run()

    def _new_kubelet(self) -> Kubelet:
        return Kubelet(
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

    def _new_agent(self, kubelet: Kubelet) -> Agent:
        face = KubeletFace(kubelet, self.clock)
        face.hold()
        self._keeper = FakeKeeper(self.holder)
        shutdowns = ShutdownRecords(self._agent_client, self.name, self.clock)
        if self._site.records:
            self.process.start(shutdowns.run(), f"{self.name}: shutdown records")
        return Agent(
            self._site.config,
            Outside(
                clock=self.clock,
                logind=self.logind,
                keeper=self._keeper,
                limit_files=self.logind.files,
                runtime=self.runtime,
                node=RecordedFace(face, shutdowns) if self._site.records else face,
                journals=self.disk,
            ),
            node_name=self.name,
            boot_id=kubelet.profile.boot_id,
            listeners=[face.hear, *([shutdowns.hear] if self._site.records else [])],
            on_status=partial(self._looked, face),
        )

    def _looked(self, face: KubeletFace, status: Status) -> None:
        face.first_look(status)
        if self.watchdog:
            self.watchdog.hold(status)

    def _own_manager(self, kubelet: Kubelet) -> ShutdownManager:
        return ShutdownManager(
            kubelet,
            self._site.config.groups,
            logind=self.logind,
            files=self.logind.files,
            release=self.logind.close,
            clock=self.clock,
        )

    def _behave(self, pod: Pod, container: str, attempt: int) -> Behaviour:
        self._site.truth.ordered(self.name, pod, container)
        return self._site.behave(pod, container, attempt)
