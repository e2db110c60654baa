"""Connects a drill to this machine: the container runtime, logind, systemd, the API server; all of them only read."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lastcall.adapters.cri.runtime import CriRuntime
from lastcall.adapters.cri.spec_sources import SpecSources
from lastcall.adapters.doctor import file_facts
from lastcall.adapters.doctor.bus_facts import HostBus
from lastcall.adapters.doctor.drill_probes import gather_traffic, gather_volumes
from lastcall.adapters.doctor.identity_facts import check_node_identity, check_own_identity
from lastcall.adapters.doctor.priority_facts import read_spec_sources
from lastcall.adapters.doctor.probes import await_probe, run_probe
from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.kubeconfig import ClusterAccess, find_access
from lastcall.adapters.kube.node_access import find_node_access
from lastcall.adapters.logind.delay_limit_files import LogindConf
from lastcall.adapters.logind.session import SystemLogind
from lastcall.aio import cancel_and_wait, wait_first
from lastcall.doctor.drill_facts import DrillFacts, TrafficFacts
from lastcall.doctor.facts import AttemptResult, HostFacts, LogindState, PriorityFacts, UnknownFact
from lastcall.doctor.logind_checks import find_lock
from lastcall.errors import LastcallError, ShutdownUnderWay, Unavailable
from lastcall.graceful.cluster.pod_changes import ObjectFate, object_fate
from lastcall.graceful.cluster.settle_time import DEFAULT_SECONDS
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.drill.read_only import ReadOnlyRuntime
from lastcall.graceful.drill.rehearsal import rehearse_shutdown
from lastcall.model.pods import Pod
from lastcall.model.shutdown import ShutdownRecord
from lastcall.names import LOCK_WHO
from lastcall.ports.node import LogindSession, RunningPod
from lastcall.wiring.config import load_config

_NOT_ASKED = UnknownFact(reason="a drill does not ask for it")


@dataclass(frozen=True, kw_only=True)
class DrillSettings:
    """The settings of the agent that runs here."""

    config: Path
    state_dir: Path
    node_name: str
    endpoint: str
    kubelet_unit: str
    kubelet_root: str
    kubeconfig: str = ""
    in_cluster: bool = False
    own_pod: str = ""
    logind_root: Path = Path("/")

    @property
    def has_own_identity(self) -> bool:
        """Whether the agent reaches the API server also with an identity of its own."""
        return bool(self.kubeconfig) or self.in_cluster


@dataclass(frozen=True, kw_only=True)
class DrillResult:
    """The facts, and the pods that the runtime listed, by uid."""

    facts: DrillFacts
    pods: dict[str, RunningPod]


async def run_drill(settings: DrillSettings) -> DrillResult:
    """Rehearses a shutdown beside the running agent, which does not notice.

    ShutdownUnderWay if the machine shuts down, or begins to meanwhile: then the drill ends at once. InvalidInput if the
    agent's configuration cannot be read, Unavailable if the runtime does not list its pods.
    """
    try:
        session = await SystemLogind().open()
    except LastcallError:
        return await _rehearse(settings)  # its checks say that logind does not answer
    drill = asyncio.ensure_future(_rehearse(settings))
    try:
        if await wait_first(_wait_for_shutdown(session), asyncio.shield(drill)) == 0:
            raise ShutdownUnderWay("the machine is shutting down: a drill is over at once, and not needed any more")
        return drill.result()
    finally:
        await cancel_and_wait(drill)
        session.close()


async def _wait_for_shutdown(session: LogindSession) -> None:
    """Returns when logind prepares a shutdown; never, if logind goes away."""
    try:
        while not await session.is_preparing():
            await session.next_change()
    except Unavailable:
        await asyncio.get_running_loop().create_future()


async def _rehearse(settings: DrillSettings) -> DrillResult:
    config = await asyncio.to_thread(load_config, settings.config)
    sources, api = await read_spec_sources(
        settings.node_name,
        settings.state_dir,
        static_pod_path=config.static_pod_path,
        kubeconfig=settings.kubeconfig,
        root=settings.logind_root,
    )
    logind = await await_probe(HostBus().logind_state())
    record, pods = await _observe_shutdown(settings, config, sources, logind)
    priorities = PriorityFacts(sources={live.pod.key: live.priority_source for live in pods.values()}, api=api)
    facts = DrillFacts(
        host=await _host_facts(settings, logind, priorities),
        record=record,
        kubelet_unit=await await_probe(HostBus().kubelet_unit(settings.kubelet_unit))
        if settings.kubelet_unit
        else None,
        traffic=await _traffic(settings, config, [live.pod for live in pods.values()]),
        volumes=await gather_volumes(
            settings.kubelet_root,
            [live.pod for live in pods.values() if object_fate(live.pod) is ObjectFate.DELETED],
        ),
    )
    return DrillResult(facts=facts, pods=pods)


async def _observe_shutdown(
    settings: DrillSettings, config: AgentConfig, sources: SpecSources, logind: LogindState | UnknownFact
) -> tuple[ShutdownRecord, dict[str, RunningPod]]:
    """The record, and the pods that the runtime has listed, by uid."""
    clock = SystemClock()
    cri = CriRuntime(
        settings.endpoint,
        clock,
        sources=lambda: sources,
        node_name=settings.node_name,
        own_pod=settings.own_pod,
    )
    runtime = ReadOnlyRuntime(cri)
    try:
        record = await rehearse_shutdown(
            config,
            runtime,
            clock,
            node_name=settings.node_name,
            boot_id=boot_id(),
            granted=logind.granted if isinstance(logind, LogindState) else None,
            lock=isinstance(logind, LogindState) and find_lock(LOCK_WHO, logind) is not None,
        )
    finally:
        await cri.close()
    return record, runtime.pods


async def _host_facts(
    settings: DrillSettings, logind: LogindState | UnknownFact, priorities: PriorityFacts
) -> HostFacts:
    """What doctor's checks need that a drill makes, too. No lock is tried: a drill changes nothing for an instant."""
    name, root = settings.node_name, settings.logind_root
    files = await asyncio.to_thread(_read_files, settings)
    return HostFacts(
        uid=os.geteuid(),
        systemd_version=await await_probe(HostBus().systemd_version()),
        targets=_NOT_ASKED,
        agent_unit=_NOT_ASKED,
        logind=logind,
        lock=_NOT_ASKED,
        drop_in=_NOT_ASKED,
        state_dir=_NOT_ASKED,
        runtime=AttemptResult(
            works=True, message=f"it has listed {len(priorities.sources)} pods at {settings.endpoint}"
        ),
        kubelet=_NOT_ASKED,
        manifests=_NOT_ASKED,
        priorities=priorities,
        node_identity=await check_node_identity(settings.kubeconfig, root, name),
        own_identity=await check_own_identity(settings.kubeconfig, root, name) if settings.has_own_identity else None,
        **files,
    )


def _read_files(settings: DrillSettings) -> dict[str, Any]:
    """The facts that are on the disk, by their names."""
    root = settings.logind_root
    return {
        "booted": (root / "run/systemd/system").is_dir(),
        "limit_files": run_probe(lambda: tuple(LogindConf(root).list_drop_ins())),
        "config": run_probe(lambda: file_facts.read_regular_file(settings.config)),
        "agent": run_probe(lambda: file_facts.agent_pid(settings.state_dir)),
    }


async def _traffic(settings: DrillSettings, config: AgentConfig, pods: Sequence[Pod]) -> TrafficFacts | UnknownFact:
    """With the identity with which the agent reads EndpointSlices."""
    access = await await_probe(asyncio.to_thread(_slices_access, settings))
    if isinstance(access, UnknownFact):
        return access
    http = HttpsTransport(access.endpoint, access.credentials)
    try:
        return await gather_traffic(Client(http, manager="lastcall-drill"), pods, config.traffic, DEFAULT_SECONDS)
    finally:
        http.close()


def _slices_access(settings: DrillSettings) -> ClusterAccess:
    if settings.has_own_identity:
        return find_access(SystemClock(), os.environ, kubeconfig=settings.kubeconfig)
    return find_node_access(SystemClock(), os.environ, root=settings.logind_root)
