"""``lastcall lab kubelet``: the kubelet of one node as a program of its own, as a service of a machine runs it."""

import asyncio
import contextlib
import logging
import math
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import api_errors
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.kubeconfig import load_kubeconfig
from lastcall.adapters.kube.resources import CSI_NODES, NODES
from lastcall.adapters.logind.delay_limit_files import LogindConf
from lastcall.adapters.logind.session import SystemLogind
from lastcall.aio import wait_first
from lastcall.errors import AlreadyExists, LastcallError
from lastcall.ports.node import Clock
from lastcall.wiring.config import load_config
from lastcall_lab.apiserver.server import kubeconfig
from lastcall_lab.containerd import LabCriRuntime
from lastcall_lab.kubelet.base.settings import NodeProfile
from lastcall_lab.kubelet.node.kubelet import LabKubelet
from lastcall_lab.kubelet.node.kubelet_shutdown_manager import KubeletShutdownManager
from lastcall_lab.kubelet.node.manifest_files import ManifestFiles
from lastcall_lab.kubelet.volumes.csi_volumes import CsiNodeDriver
from lastcall_lab.kubelet.volumes.pod_directories import PodDirectories
from lastcall_lab.up.lab_pages import PREFIX
from lastcall_lab.up.signals import call_at_signals
from lastcall_lab.volumes import csi_objects

_RETRY = 1.0
"""Seconds between two attempts to reach the lab, and between two looks for CSI drivers."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class KubeletOptions:
    """The options of the command line, which are the kubelet's where it has them.

    ``manifests`` is the directory of its static pods. ``config`` has the phases of the kubelet's own shutdown manager; None switches it off. ``logind_root`` as in
    AgentSettings.
    """

    node: str
    kubeconfig: Path
    bootstrap: Path | None
    root: Path
    endpoint: str
    manifests: Path | None
    config: Path | None
    logind_root: Path


async def run_kubelet(wanted: KubeletOptions) -> None:
    """Runs until SIGTERM or SIGINT, which leave the pods running for the next run."""
    stopped, clock = asyncio.Event(), SystemClock()
    call_at_signals(stopped.set)
    if await wait_first(_ensure_identity(wanted, clock), stopped.wait()) == 1:
        return
    access = await asyncio.to_thread(load_kubeconfig, [wanted.kubeconfig], clock)
    http = HttpsTransport(access.endpoint, access.credentials)
    try:
        await _run_with_client(wanted, Client(http, manager="kubelet"), clock, stopped)
    finally:
        http.close()


async def _run_with_client(wanted: KubeletOptions, client: Client, clock: Clock, stopped: asyncio.Event) -> None:
    async with _open_runtime(wanted, clock) as runtime:
        kubelet = LabKubelet(
            await asyncio.to_thread(_node_profile, wanted.node),
            runtime,
            client=client,
            clock=clock,
            random=Random(),  # noqa: S311 - spreads retries
            directories=PodDirectories(wanted.root / "pods"),
            volumes=CsiNodeDriver(wanted.root, client),
            manifests=ManifestFiles(wanted.manifests, wanted.node) if wanted.manifests else None,
        )
        drivers = _register_drivers(wanted, client, clock)
        await wait_first(kubelet.run(), drivers, _run_shutdown_manager(wanted, kubelet, clock), stopped.wait())


@contextlib.asynccontextmanager
async def _open_runtime(wanted: KubeletOptions, clock: Clock) -> AsyncIterator[LabCriRuntime]:
    runtime = LabCriRuntime(
        wanted.endpoint, clock, directory=wanted.root / "runtime", cgroup=f"/lastcall-{wanted.node}"
    )
    await runtime.open()
    try:
        yield runtime
    finally:
        await runtime.close()


def _node_profile(node: str) -> NodeProfile:
    machine = os.uname()
    return NodeProfile(
        name=node,
        address="127.0.0.1",
        privileged=True,
        boot_id=boot_id(),
        architecture={"x86_64": "amd64", "aarch64": "arm64"}.get(machine.machine, machine.machine),
        kernel=machine.release,
        runtime="containerd://1",
    )


async def _run_shutdown_manager(wanted: KubeletOptions, kubelet: LabKubelet, clock: Clock) -> None:
    """As the kubelet does: a shutdown manager that ends, or never armed, ends nothing else."""
    if wanted.config:
        config = await asyncio.to_thread(load_config, wanted.config)
        manager = KubeletShutdownManager(
            kubelet,
            config.groups,
            logind=SystemLogind(),
            files=_DropIns(wanted.logind_root),
            release=os.close,
            clock=clock,
        )
        await manager.run()
    await asyncio.Event().wait()


class _DropIns:
    """``DelayDropIns`` on the disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, name: str, value: str) -> None:
        """Writes it, and never lowers the limit."""
        LogindConf(self._root, name=name).write_limit(math.ceil(float(value)))


# -- identity ----------------------------------------------------------------------------------------------------------


async def _ensure_identity(wanted: KubeletOptions, clock: Clock) -> None:
    """Unless ``wanted.kubeconfig`` exists, writes it with a token from the lab, as a kubelet's TLS bootstrap does."""
    if wanted.bootstrap and not await asyncio.to_thread(wanted.kubeconfig.exists):
        await _fetch_identity(wanted, wanted.bootstrap, clock)


async def _fetch_identity(wanted: KubeletOptions, bootstrap: Path, clock: Clock) -> None:
    access = await asyncio.to_thread(load_kubeconfig, [bootstrap], clock)
    http = HttpsTransport(access.endpoint, access.credentials)
    try:
        while True:
            try:
                answer = await http.request("POST", f"{PREFIX}kubelet/{wanted.node}", {}, b"")
                break
            except LastcallError as error:
                log.warning("the lab cannot be asked for the identity of node %s: %s", wanted.node, error)
            await clock.sleep(_RETRY)
    finally:
        http.close()
    if answer.status >= 300:
        raise api_errors.response_error(answer)
    assert isinstance(answer.body, bytes)
    said = msgspec.json.decode(answer.body)
    await asyncio.to_thread(
        kubeconfig.write_kubeconfig,
        wanted.kubeconfig,
        url=said["url"],
        authority=said["authority"].encode(),
        token=said["token"],
        user=f"system:node:{wanted.node}",
    )


# -- drivers -----------------------------------------------------------------------------------------------------------


async def _register_drivers(wanted: KubeletOptions, client: Client, clock: Clock) -> None:
    """Writes the CSINode with the drivers that have a socket in the usual place (``pkg/volume/csi/nodeinfomanager``)."""
    written: list[str] | None = None
    while True:
        found = await asyncio.to_thread(_find_drivers, wanted.root)
        if found != written:
            with contextlib.suppress(LastcallError):
                await _write_csi_node(wanted.node, found, client)
                written = found
        await clock.sleep(_RETRY)


def _find_drivers(root: Path) -> list[str]:
    return sorted(socket.parent.name for socket in (root / "plugins").glob("*/csi.sock"))


async def _write_csi_node(node: str, drivers: list[str], client: Client) -> None:
    owner = await client.get(NODES, node)
    wanted = csi_objects.csi_node(node, owner["metadata"]["uid"], drivers=drivers)
    try:
        await client.create(CSI_NODES, wanted)
    except AlreadyExists:
        await client.patch(CSI_NODES, node, {"spec": wanted["spec"]})
