"""The software on one of the lab's machines: kubelet with pods, service proxy, shutdown manager with a logind."""

import asyncio
import contextlib
import logging
import os
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from lastcall.adapters.kube.client import Client
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import LastcallError
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.shutdown.journal_recorder import Listener
from lastcall.ports.node import Clock
from lastcall_lab.fakes.lock_keeper import FakeLockHolder
from lastcall_lab.fakes.logind import FakeLogind
from lastcall_lab.kubelet.base.node_runtime import NodeRuntime
from lastcall_lab.kubelet.base.settings import KubeletSettings, NodeProfile
from lastcall_lab.kubelet.node.kubelet import LabKubelet
from lastcall_lab.kubelet.volumes.pod_directories import PodDirectories
from lastcall_lab.traffic.endpoint_table import EndpointTable
from lastcall_lab.traffic.service_proxy import ServiceProxy
from lastcall_lab.up import pod_runtimes, shutdown_managers
from lastcall_lab.up.log_prefix import log_as_machine
from lastcall_lab.up.shutdown_managers import ManagerDeps, RunningManager, ShutdownManagerType
from lastcall_lab.volumes.node_driver import NodeDriver
from lastcall_lab.volumes.storage import Storage

log = logging.getLogger(__name__)

PROPAGATION_DELAY = 0.1
"""Default of the seconds between a change of endpoints and a node's knowledge of it."""


@dataclass(frozen=True, kw_only=True)
class LabInfrastructure:
    """The shared parts of the machines of one lab.

    ``config`` has the phases of a shutdown, for any ``manager``. ``delay`` is how many seconds late a node learns of
    endpoints. ``settings`` are the kubelets' constants. ``listeners`` get the events of lastcall's agent.
    """

    clock: Clock
    random: Random
    directory: Path
    storage: Storage
    config: AgentConfig
    runtime: str = "processes"
    manager: ShutdownManagerType = ShutdownManagerType.LASTCALL
    delay: float = PROPAGATION_DELAY
    settings: KubeletSettings = field(default_factory=KubeletSettings)
    listeners: Callable[[str], list[Listener]] = lambda node: []


class DelayedProxies:
    """``ports.cluster.ProxyLatency`` of the lab's nodes, which learn of each change ``delay`` seconds late."""

    def __init__(self, delay: float) -> None:
        self._delay = delay

    async def read_latency(self) -> float | None:
        """Twice the delay: the first half is the proxies', the second lets connections in flight arrive."""
        return 2 * self._delay


class MachineClients(NamedTuple):
    """The clients of the programs on one machine, through its cable."""

    kubelet: Client
    proxy: Client
    agent: Client


class LocalHost:
    """``power.MachineHost`` with real processes or containers."""

    def __init__(self, name: str, number: int, site: LabInfrastructure, clients: MachineClients) -> None:
        self.name = name
        self.directory = site.directory / name
        self._number = number
        self._site = site
        self._client = clients.kubelet
        self._agent_client = clients.agent
        self._privileged = os.geteuid() == 0
        self._machine = OrderedTaskGroup()
        self._node = OrderedTaskGroup()
        self._runtime: NodeRuntime | None = None
        self._opened = contextlib.AsyncExitStack()
        self._boot_id = ""
        self.logind = FakeLogind(site.clock)
        self._holder = FakeLockHolder(self.logind, site.clock)
        self.kubelet: LabKubelet | None = None
        self.table = EndpointTable(
            clients.proxy, site.clock, site.random, delay=site.delay, on_change=self._update_proxy
        )
        self.proxy = ServiceProxy(self.table, node=number, privileged=self._privileged)

    def _update_proxy(self, _: object) -> None:
        self.proxy.request_update()

    # -- power.Host ----------------------------------------------------------------------------------------------------

    async def boot(self) -> None:
        """Boots the machine without processes of its last boot. Adopts pods that a killed lab has left running."""
        await asyncio.to_thread(self.directory.mkdir, parents=True, exist_ok=True)
        self._boot_id = str(uuid.UUID(int=self._site.random.getrandbits(128), version=4))
        opened = pod_runtimes.open_runtime(self._site.runtime, self.directory, self.name, self._site.clock)
        self._runtime = await self._opened.enter_async_context(opened)
        self.logind = FakeLogind(self._site.clock)
        self._holder = FakeLockHolder(self.logind, self._site.clock)
        self._machine = OrderedTaskGroup()
        with log_as_machine(self.name):
            self._machine.start(self.table.run(), f"{self.name}: endpoints")
            self._machine.start(self.proxy.run(), f"{self.name}: proxy")
        await self.start_kubelet()

    async def die(self) -> None:
        """Ends everything by SIGKILL."""
        await self.stop_kubelet()
        self._holder.drop()
        await self._machine.cancel()
        runtime, self._runtime = self._runtime, None
        try:
            if runtime:
                await self._kill_pods(runtime)
        finally:
            await self._opened.aclose()
        self._site.storage.drop_mounts(self.name)
        for name in ("runtime", "pods"):
            await asyncio.to_thread(shutil.rmtree, self.directory / name, ignore_errors=True)

    async def _kill_pods(self, runtime: NodeRuntime) -> None:
        try:
            for live in await runtime.refresh_pods():
                await runtime.remove_pod(live.pod.metadata.uid)
        except LastcallError as error:
            log.warning("%s: its pods end with their runtime, which does not answer: %s", self.name, error)

    async def press(self) -> bool:
        """Presses the power button; the machine's lock is held until the pods have ended."""
        await self.logind.power_off()
        return await self.logind.wait_until_settled()

    async def call_off_shutdown(self) -> bool:
        """Cancels the shutdown, as ``shutdown -c`` does with systemd 257."""
        if await self.logind.starts():
            return False
        await self.logind.cancel_schedule()
        return True

    async def cut_storage(self, *, cut: bool) -> None:
        """Cuts or restores the machine's write access to the storage."""
        await (self._site.storage.cut(self.name) if cut else self._site.storage.mend(self.name))

    async def stop_kubelet(self) -> None:
        """Ends the kubelet and the shutdown manager in the middle of their work; pods run on."""
        await self._node.cancel()
        self.kubelet = None

    async def start_kubelet(self) -> None:
        """Starts both again."""
        assert self._runtime is not None
        self.kubelet = LabKubelet(
            self._node_profile(),
            self._runtime,
            client=self._client,
            clock=self._site.clock,
            random=self._site.random,
            directories=PodDirectories(self.directory / "pods"),
            settings=self._site.settings,
            volumes=NodeDriver(self._site.storage, self.name, self._client),
        )
        manager = await self._new_manager(
            ManagerDeps(
                self.kubelet,
                self._runtime,
                self.logind,
                self._holder,
                self._site.clock,
                self._boot_id,
                self._agent_client,
                self._site.random,
                DelayedProxies(self._site.delay),
            )
        )
        self._node = OrderedTaskGroup()
        with log_as_machine(self.name):
            self._node.start(self.kubelet.run(), f"{self.name}: kubelet")
            self._node.start(manager.run(), f"{self.name}: shutdown manager")

    async def _new_manager(self, around: ManagerDeps) -> RunningManager:
        if self._site.manager is ShutdownManagerType.KUBELET:
            return shutdown_managers.kubelet_manager(self._site.config, around)
        return await shutdown_managers.lastcall_manager(
            self._site.config,
            around,
            directory=self.directory / "agent",
            listeners=self._site.listeners(self.name),
        )

    def _node_profile(self) -> NodeProfile:
        kernel = os.uname()
        return NodeProfile(
            name=self.name,
            address=f"127.0.1.{self._number + 1}",
            number=self._number,
            privileged=self._privileged,
            boot_id=self._boot_id,
            architecture={"x86_64": "amd64", "aarch64": "arm64"}.get(kernel.machine, kernel.machine),
            kernel=kernel.release,
            runtime=f"{self._site.runtime}://1",
        )
