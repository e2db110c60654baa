"""Gathers what ``lastcall doctor`` judges. Each question is asked by itself: one without an answer spoils no other."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lastcall.adapters import host_files, kubelet_process
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import Connection
from lastcall.adapters.host_bus import HostBus
from lastcall.adapters.logind_conf import LogindConf
from lastcall.adapters.probes import LIMIT_SECONDS, answered, known
from lastcall.errors import Unavailable
from lastcall.host import Attempt, File, HostFacts, Kubelet, Unknown


@dataclass(frozen=True, kw_only=True)
class Where:
    """Where to look; ``root`` is where etc, run, proc and the kubelet's files lie, another than / only for tests."""

    config: Path
    state_dir: Path
    endpoint: str
    targets: Sequence[str]
    unit: str
    root: Path = Path("/")


async def gather(where: Where, bus: HostBus) -> HostFacts:
    """The facts; reads local files at once, and waits for no service longer than the probes' limit.

    InvalidInput if the endpoint names no socket.
    """
    runtime = Connection(where.endpoint)
    try:
        version, targets, unit, use, logind, attempt = await asyncio.gather(
            answered(bus.systemd_version()),
            answered(bus.load_states(where.targets)),
            answered(bus.service(where.unit)),
            answered(bus.watchdog_use(where.unit)),
            answered(bus.logind()),
            answered(_runtime(runtime)),
        )
        lock = logind if isinstance(logind, Unknown) else await answered(bus.try_lock())  # afterwards: not seen above
    finally:
        runtime.close()
    config = known(lambda: host_files.read(where.config))
    kubelet = known(lambda: kubelet_process.find(where.root))
    return HostFacts(
        uid=os.geteuid(),
        booted=(where.root / "run/systemd/system").is_dir(),
        systemd_version=version,
        targets=targets,
        agent_unit=unit,
        logind=logind,
        lock=lock,
        limit_files=known(lambda: tuple(LogindConf(where.root).settings())),
        drop_in=known(lambda: host_files.drop_in(where.root)),
        config=config,
        state_dir=known(lambda: host_files.state_dir(where.state_dir)),
        agent=known(lambda: host_files.agent_pid(where.state_dir)),
        runtime=attempt,
        kubelet=kubelet,
        manifests=known(lambda: _manifests(where.root, kubelet, config)),
        watchdogs=known(lambda: host_files.watchdogs(where.root)),
        watchdog_use=use,
    )


async def _runtime(connection: Connection) -> Attempt:
    try:
        # Sooner than the probe's limit: a runtime that keeps silent does not work, which is more than not known.
        answer = await connection.call("Version", cri.VersionRequest(version="v1"), within=0.8 * LIMIT_SECONDS)
    except Unavailable as error:
        return Attempt(works=False, message=str(error))
    said = f"{answer.runtime_name} {answer.runtime_version} answers at {connection.endpoint}"
    return Attempt(works=True, message=said)


def _manifests(root: Path, kubelet: Kubelet | Unknown | None, config: File | Unknown) -> tuple[File, ...] | Unknown:
    """The running kubelet's; without one, those of the configuration that was named."""
    if not isinstance(kubelet, Kubelet):
        return kubelet_process.manifests(root, (), () if isinstance(config, Unknown) else (config,))
    if isinstance(kubelet.config, Unknown):
        return kubelet.config
    return kubelet_process.manifests(root, kubelet.arguments, kubelet.config)
