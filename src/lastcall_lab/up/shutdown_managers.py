"""The component that ends a node's pods at a shutdown: lastcall's agent, or the kubelet's own manager as baseline."""

import asyncio
from enum import Enum
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.node_shutdown_recorder import NodeShutdownRecorder, RecordingNodeFace
from lastcall.adapters.kube.pod_endpoints import KubePodEndpoints
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.aio import cancel_and_wait
from lastcall.graceful.agent import AgentPorts, ShutdownAgent
from lastcall.graceful.cluster.settle_time import SettleTime
from lastcall.graceful.cluster.traffic_wait import TrafficWait
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.shutdown.journal_recorder import Listener
from lastcall.ports.cluster import ProxyLatency
from lastcall.ports.node import Clock
from lastcall_lab.fakes.lock_keeper import FakeLockHolder, FakeLockKeeper
from lastcall_lab.fakes.logind import FakeLogind
from lastcall_lab.kubelet.base.node_runtime import NodeRuntime
from lastcall_lab.kubelet.node.kubelet import LabKubelet
from lastcall_lab.kubelet.node.kubelet_shutdown_manager import KubeletShutdownManager
from lastcall_lab.kubelet.node.node_face import KubeletNodeFace, ServiceTraffic


class ShutdownManagerType(Enum):
    """The kinds of shutdown managers."""

    LASTCALL = "lastcall"
    """lastcall's agent; the kubelet's own manager is off, as lastcall requires."""
    KUBELET = "kubelet"
    """The kubelet alone, without lastcall."""


class RunningManager(Protocol):
    """One run of a manager."""

    async def run(self) -> None:
        """Runs until cancelled, which ends it like a crash."""
        ...


class ManagerDeps(NamedTuple):
    """The dependencies of a manager: one run of the node's kubelet, and the machine.

    ``boot_id`` is that of the machine's boot. ``holder`` keeps the lock across restarts of lastcall's agent. ``client``
    acts as lastcall's agent. ``proxies`` is how the proxies of the nodes follow changes.
    """

    kubelet: LabKubelet
    runtime: NodeRuntime
    logind: FakeLogind
    holder: FakeLockHolder
    clock: Clock
    boot_id: str
    client: Client
    random: Random
    proxies: ProxyLatency


def kubelet_manager(config: AgentConfig, around: ManagerDeps) -> RunningManager:
    """The kubelet's own manager; its phases are the same fields of the same configuration."""
    return KubeletShutdownManager(
        around.kubelet,
        config.groups,
        logind=around.logind,
        files=around.logind.files,
        release=around.logind.close,
        clock=around.clock,
    )


async def lastcall_manager(
    config: AgentConfig, around: ManagerDeps, *, directory: Path, listeners: list[Listener]
) -> RunningManager:
    """An agent with its journals in that directory; the kubelet starts pods only after the agent's first check."""
    name = around.kubelet.profile.name
    face, shutdowns = (
        KubeletNodeFace(around.kubelet, around.clock, _service_traffic(config, around)),
        NodeShutdownRecorder(lambda: (around.client,), name, around.clock),
    )
    face.hold_pods()
    keeper = FakeLockKeeper(around.holder)
    agent = ShutdownAgent(
        config,
        AgentPorts(
            clock=around.clock,
            logind=around.logind,
            keeper=keeper,
            limit_files=around.logind.files,
            runtime=around.runtime,
            node=RecordingNodeFace(face, shutdowns),
            journals=await asyncio.to_thread(_journal_files, directory),
        ),
        node_name=name,
        boot_id=around.boot_id,
        listeners=[face.hear, shutdowns.record_event, *listeners],
        on_status=face.first_look,
    )
    return _AgentLife(agent, keeper, shutdowns)


def _service_traffic(config: AgentConfig, around: ManagerDeps) -> ServiceTraffic | None:
    settings = config.traffic
    if not settings.limit_seconds:
        return None
    endpoints = KubePodEndpoints(lambda: around.client, around.clock, around.random)
    settle = SettleTime(settings.settle_seconds, around.proxies)
    wait = TrafficWait(endpoints, settle=settle, observe=lambda _: None, clock=around.clock)
    return ServiceTraffic(endpoints, settle, wait, settings.limit_seconds)


class _AgentLife:
    """An agent that ends as by SIGKILL."""

    def __init__(self, agent: ShutdownAgent, keeper: FakeLockKeeper, shutdowns: NodeShutdownRecorder) -> None:
        self._agent = agent
        self._keeper = keeper
        self._shutdowns = shutdowns

    async def run(self) -> None:
        """Runs until cancelled; the lock stays with its holder then."""
        life, writing = (asyncio.ensure_future(one.run()) for one in (self._agent, self._shutdowns))
        try:
            await asyncio.shield(life)
        finally:
            self._keeper.die()
            await cancel_and_wait(life, writing)


def _journal_files(directory: Path) -> JournalFiles:
    journals = JournalFiles(directory)
    journals.prepare()
    return journals
