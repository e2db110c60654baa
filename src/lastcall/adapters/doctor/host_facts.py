"""Gathers the facts for ``lastcall doctor``. Probes are independent: one that fails does not affect the others."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection
from lastcall.adapters.doctor import file_facts, kubelet_facts
from lastcall.adapters.doctor.admission_files import read_static_webhooks
from lastcall.adapters.doctor.bus_facts import HostBus
from lastcall.adapters.doctor.probes import LIMIT_SECONDS, await_probe, run_probe
from lastcall.adapters.logind.delay_limit_files import LogindConf
from lastcall.doctor.facts import AttemptResult, HostFacts, HostFile, KubeletFacts, UnknownFact
from lastcall.errors import Unavailable


@dataclass(frozen=True, kw_only=True)
class HostLocations:
    """Paths and addresses to examine; etc, run, proc and the kubelet's files lie below ``root`` (/ but in tests)."""

    config: Path
    state_dir: Path
    endpoint: str
    targets: Sequence[str]
    unit: str
    root: Path = Path("/")


async def gather_host_facts(where: HostLocations, bus: HostBus) -> HostFacts:
    """Gathers the facts: reads local files at once, and waits for no service longer than the probes' limit.

    Raises InvalidInput if the endpoint names no socket.
    """
    runtime = CriConnection(where.endpoint)
    try:
        version, targets, unit, use, logind, attempt = await asyncio.gather(
            await_probe(bus.systemd_version()),
            await_probe(bus.load_states(where.targets)),
            await_probe(bus.find_service(where.unit)),
            await_probe(bus.watchdog_use(where.unit)),
            await_probe(bus.logind_state()),
            await_probe(_probe_runtime(runtime)),
        )
        lock = (
            logind if isinstance(logind, UnknownFact) else await await_probe(bus.try_lock())
        )  # afterwards: not seen above
    finally:
        runtime.close()
    config = run_probe(lambda: file_facts.read_regular_file(where.config))
    kubelet = probe_kubelet(where.root)
    manifests = run_probe(lambda: _read_manifests(where.root, kubelet, config))
    return HostFacts(
        uid=os.geteuid(),
        booted=(where.root / "run/systemd/system").is_dir(),
        systemd_version=version,
        targets=targets,
        agent_unit=unit,
        logind=logind,
        lock=lock,
        limit_files=run_probe(lambda: tuple(LogindConf(where.root).list_drop_ins())),
        drop_in=run_probe(lambda: file_facts.probe_drop_in(where.root)),
        config=config,
        state_dir=run_probe(lambda: file_facts.probe_state_dir(where.state_dir)),
        agent=run_probe(lambda: file_facts.agent_pid(where.state_dir)),
        runtime=attempt,
        kubelet=kubelet,
        manifests=manifests,
        static_webhooks=_read_webhooks(where.root, manifests),
        watchdogs=run_probe(lambda: file_facts.list_watchdogs(where.root)),
        watchdog_use=use,
    )


def _read_webhooks(root: Path, manifests: tuple[HostFile, ...] | UnknownFact) -> tuple[HostFile, ...] | UnknownFact:
    """None where no static pods are known: most machines run no API server."""
    return () if isinstance(manifests, UnknownFact) else run_probe(lambda: read_static_webhooks(root, manifests))


def probe_kubelet(root: Path) -> KubeletFacts | UnknownFact | None:
    """The kubelet of this machine; None if none runs, which a pod without hostPID does not know."""
    found = run_probe(lambda: kubelet_facts.find_kubelet(root))
    if found is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return UnknownFact(reason="in a pod the processes of the machine are not seen")
    return found


async def _probe_runtime(connection: CriConnection) -> AttemptResult:
    try:
        # Sooner than the probe's limit: "the runtime does not answer" is a finding, not an unknown fact.
        answer = await connection.call("Version", cri.VersionRequest(version="v1"), within=0.8 * LIMIT_SECONDS)
    except Unavailable as error:
        return AttemptResult(works=False, message=str(error))
    said = f"{answer.runtime_name} {answer.runtime_version} answers at {connection.endpoint}"
    return AttemptResult(works=True, message=said)


def _read_manifests(
    root: Path, kubelet: KubeletFacts | UnknownFact | None, config: HostFile | UnknownFact
) -> tuple[HostFile, ...] | UnknownFact:
    """The running kubelet's manifests; without a kubelet, those of the given configuration."""
    if not isinstance(kubelet, KubeletFacts):
        return kubelet_facts.read_static_manifests(root, (), () if isinstance(config, UnknownFact) else (config,))
    if isinstance(kubelet.config, UnknownFact):
        return kubelet.config
    return kubelet_facts.read_static_manifests(root, kubelet.arguments, kubelet.config)
