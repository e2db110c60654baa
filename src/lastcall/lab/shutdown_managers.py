"""What ends a node's pods when its machine goes down: lastcall's agent, or the kubelet's own manager as the baseline."""

import asyncio
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

from lastcall.adapters.journal_files import JournalFiles
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.shutdown_records import RecordedFace, ShutdownRecords
from lastcall.aio import cancel
from lastcall.graceful.agent import Agent, Outside
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.recorder import Listener
from lastcall.lab.fake_keeper import FakeHolder, FakeKeeper
from lastcall.lab.fake_logind import FakeLogind
from lastcall.lab.kubelet.kubelet import Kubelet
from lastcall.lab.kubelet.own_shutdown import ShutdownManager
from lastcall.lab.kubelet.runtime import NodeRuntime
from lastcall.lab.kubelet.shutdown import KubeletFace
from lastcall.ports import Clock


class Manager(Enum):
    """By whom a node goes down."""

    LASTCALL = "lastcall"
    """The graceful core; the kubelet's own manager is off, as it has to be beside lastcall."""
    KUBELET = "kubelet"
    """The kubelet alone, as if nobody had ever heard of lastcall."""


class Runs(Protocol):
    """One life of a manager."""

    async def run(self) -> None:
        """Until cancelled, which is its death."""
        ...


class Surroundings(NamedTuple):
    """Of a manager: one life of the node's kubelet, and the machine. ``boot_id`` is that of the machine's boot.

    ``holder`` keeps the lock over the lives of lastcall's agent. ``client`` asks as lastcall's agent.
    """

    kubelet: Kubelet
    runtime: NodeRuntime
    logind: FakeLogind
    holder: FakeHolder
    clock: Clock
    boot_id: str
    client: Client


def by_kubelet(config: AgentConfig, around: Surroundings) -> Runs:
    """The kubelet's own; its phases are the same fields of the same configuration."""
    return ShutdownManager(
        around.kubelet,
        config.groups,
        logind=around.logind,
        files=around.logind.files,
        release=around.logind.close,
        clock=around.clock,
    )


async def by_lastcall(config: AgentConfig, around: Surroundings, *, directory: Path, listeners: list[Listener]) -> Runs:
    """An agent with its journals in that directory; the kubelet starts nothing before it has looked."""
    name = around.kubelet.profile.name
    face, shutdowns = KubeletFace(around.kubelet, around.clock), ShutdownRecords(around.client, name, around.clock)
    face.hold()
    keeper = FakeKeeper(around.holder)
    agent = Agent(
        config,
        Outside(
            clock=around.clock,
            logind=around.logind,
            keeper=keeper,
            limit_files=around.logind.files,
            runtime=around.runtime,
            node=RecordedFace(face, shutdowns),
            journals=await asyncio.to_thread(_journals, directory),
        ),
        node_name=name,
        boot_id=around.boot_id,
        listeners=[face.hear, shutdowns.hear, *listeners],
        on_status=face.first_look,
    )
    return _AgentLife(agent, keeper, shutdowns)


class _AgentLife:
    """An agent that dies as by SIGKILL."""

    def __init__(self, agent: Agent, keeper: FakeKeeper, shutdowns: ShutdownRecords) -> None:
        self._agent = agent
        self._keeper = keeper
        self._shutdowns = shutdowns

    async def run(self) -> None:
        """Until cancelled; the lock is its holder's then."""
        life, writing = (asyncio.ensure_future(one.run()) for one in (self._agent, self._shutdowns))
        try:
            await asyncio.shield(life)
        finally:
            self._keeper.die()
            await cancel(life, writing)


def _journals(directory: Path) -> JournalFiles:
    journals = JournalFiles(directory)
    journals.prepare()
    return journals
