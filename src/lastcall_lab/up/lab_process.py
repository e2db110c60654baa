"""``lastcall lab up``: a control plane and some machines as one process, until Ctrl-C, SIGTERM or ``lastcall lab down``."""

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Any

from lastcall.adapters.host.clock import SystemClock
from lastcall.aio import cancel_and_wait, timeout, wait_any, wait_first
from lastcall.errors import InvalidInput, Unavailable
from lastcall.graceful import config as configuration
from lastcall.model.eviction_request_mode import EvictionRequestMode
from lastcall_lab.apiserver.authorization.audit import AuditLog, append_to
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.catalog.optional_resources import LIFECYCLE
from lastcall_lab.apiserver.storage import private_files
from lastcall_lab.apiserver.storage.database import FILE, Database
from lastcall_lab.apiserver.storage.store import Store
from lastcall_lab.control_plane.control_plane import ControlPlane, ControlPlaneLocation
from lastcall_lab.machines.redfish_service import RedfishService
from lastcall_lab.up import pod_runtimes
from lastcall_lab.up.lab_pages import LabPages
from lastcall_lab.up.local_host import PROPAGATION_DELAY, LabInfrastructure
from lastcall_lab.up.local_machines import LocalMachines
from lastcall_lab.up.shutdown_managers import ShutdownManagerType
from lastcall_lab.up.signals import call_at_signals
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_store import DirectoryVolumes

log = logging.getLogger(__name__)

CONFIG = Path(__file__).parent / "agent.yaml"
"""The configuration of the shutdown managers on the lab's nodes."""

_PARTS = ("control-plane", "machines", "volumes")
"""The lab's files in its directory besides the database."""

UP_SECONDS = 120.0
"""Seconds within which everything must have started."""


@dataclass(frozen=True, kw_only=True)
class LabOptions:
    """The options of the command line. ``data`` None: the lab leaves no files. ``delay`` is LabInfrastructure's."""

    nodes: int
    runtime: str
    kubeconfig: Path
    data: Path | None
    manager: ShutdownManagerType = ShutdownManagerType.LASTCALL
    delay: float = PROPAGATION_DELAY
    port: int = 0
    without: Collection[str] = ()
    failover: bool = False
    """``lastcall controller`` runs too."""
    guard: bool = False
    """``lastcall guard run`` runs too."""
    authorization: AuthorizationMode = AuthorizationMode.RBAC
    audit_log: Path | None = None
    optional: Sequence[str] = ()
    """API versions that are served besides."""


Tell = Callable[[ControlPlane, LocalMachines], None]
Work = Callable[[], Coroutine[Any, Any, object]]


def default_kubeconfig() -> Path:
    """The default path of the lab's kubeconfig (XDG base directories)."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "lastcall" / "lab.kubeconfig"


async def run_lab(wanted: LabOptions, *, tell: Tell) -> None:
    """Runs the lab until SIGINT, SIGTERM or SIGHUP; calls ``tell`` once it can be used.

    Nothing is left at the end but the files in ``data``.
    """
    pod_runtimes.check_runtime(wanted.runtime)
    stopped = asyncio.Event()
    call_at_signals(stopped.set)
    clock = SystemClock()
    with _open_audit(wanted.audit_log, clock) as audit:
        async with (
            _data_directory(wanted.data) as directory,
            _open_store(directory, kept=wanted.data is not None) as store,
        ):
            await _run_lab(wanted, directory, clock, store, audit, tell=tell, stopped=stopped)


async def _run_lab(
    wanted: LabOptions,
    directory: Path,
    clock: SystemClock,
    store: Store | None,
    audit: AuditLog,
    *,
    tell: Tell,
    stopped: asyncio.Event,
) -> None:
    random = SystemRandom()
    place = ControlPlaneLocation(directory / "control-plane", wanted.kubeconfig, port=wanted.port)
    storage = Storage(DirectoryVolumes(directory / "volumes"), clock)
    plane = ControlPlane(
        place,
        clock,
        random,
        without=wanted.without,
        storage=storage,
        store=store,
        audit=audit,
        authorization=wanted.authorization,
        optional=wanted.optional,
    )
    await plane.prepare()
    site = LabInfrastructure(
        clock=clock,
        random=random,
        directory=directory / "machines",
        storage=storage,
        runtime=wanted.runtime,
        manager=wanted.manager,
        delay=wanted.delay,
        config=configuration.parse_config(CONFIG.read_bytes(), str(CONFIG)),
    )
    machines = LocalMachines(plane, site, count=wanted.nodes)
    bmcs = RedfishService(machines, plane.bmc_password)
    plane.pages = LabPages(plane.server, plane.server.access.permit, machines, stopped.set, bmcs, plane.join_node)
    beside = _work_beside(wanted, plane, directory, clock)
    try:
        await wait_first(plane.run(), machines.run(), _supervise(plane, machines, tell, stopped, beside))
    finally:
        await machines.clean_up()


def _work_beside(wanted: LabOptions, plane: ControlPlane, directory: Path, clock: SystemClock) -> Work:
    """The programs of lastcall that run in the lab's process; they are optional, and slow to import."""
    works: list[Work] = []
    if wanted.failover:
        from lastcall_lab.up.failover_controller import LabFailoverController  # noqa: PLC0415

        works.append(LabFailoverController(plane, directory / "control-plane", clock).run)
    if wanted.guard:
        from lastcall_lab.up.guard import LabGuard  # noqa: PLC0415

        mode = EvictionRequestMode.CONTROL if LIFECYCLE in wanted.optional else EvictionRequestMode.OFF
        works.append(LabGuard(plane, directory / "control-plane", eviction_requests=mode).run)
    if not works:
        return asyncio.Event().wait
    return lambda: wait_first(*(work() for work in works))


async def _supervise(
    plane: ControlPlane,
    machines: LocalMachines,
    tell: Tell,
    stopped: asyncio.Event,
    beside: Work,
) -> None:
    """Calls ``tell`` when everything runs, then waits for the stop. Unavailable if the start fails.

    It ends what runs ``beside`` first, so that this can still release its Lease at the API server.
    """
    await _wait_until_up(plane, machines, tell, stopped)
    await wait_first(stopped.wait(), beside())
    plane.stop()
    await asyncio.Event().wait()  # the control plane ends, and with it everything else


async def _wait_until_up(plane: ControlPlane, machines: LocalMachines, tell: Tell, stopped: asyncio.Event) -> None:
    await plane.up.wait()
    began = asyncio.ensure_future(machines.wait_until_ready())
    end = asyncio.ensure_future(stopped.wait())
    try:
        async with timeout(UP_SECONDS):
            await wait_any(began, end)
    except TimeoutError:
        raise Unavailable(f"the lab is not up after {UP_SECONDS:g} s") from None
    finally:
        await cancel_and_wait(began)
    if not stopped.is_set():
        began.result()
        tell(plane, machines)
    await cancel_and_wait(end)


@contextlib.asynccontextmanager
async def _data_directory(data: Path | None) -> AsyncIterator[Path]:
    """The permanent directory, or a temporary one."""
    if data is not None:
        try:
            await asyncio.to_thread(_keep_private, data)
        except OSError as error:
            raise InvalidInput("--data", [f"{data} cannot be made: {error.strerror}"]) from None
        yield data
        return
    directory = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="lastcall-lab-"))
    try:
        yield directory
    finally:
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)


def _keep_private(data: Path) -> None:
    """Makes the directory and its subdirectories of the lab accessible to their owner alone.

    Existing ones are corrected. A directory with files of other programs, such as ``/tmp``, is left as it is.
    """
    shared = data.is_dir() and any(data.iterdir()) and not (data / FILE).exists()
    if shared:
        log.warning("--data: %s has files of other programs: its mode is left as it is", data)
    else:
        private_files.make_directory(data)
    for part in _PARTS:
        private_files.make_directory(data / part)


@contextlib.contextmanager
def _open_audit(path: Path | None, clock: SystemClock) -> Iterator[AuditLog]:
    if path is None:
        yield AuditLog(clock)
        return
    with contextlib.ExitStack() as stack:
        try:
            sink = stack.enter_context(append_to(path))
        except OSError as error:
            raise InvalidInput("--audit-log", [f"{path} cannot be written: {error.strerror}"]) from None
        yield AuditLog(clock, sink=sink)


@contextlib.asynccontextmanager
async def _open_store(directory: Path, *, kept: bool) -> AsyncIterator[Store | None]:
    if not kept:
        yield None
        return
    database = await Database.open(directory)
    try:
        yield database.store
    finally:
        await database.close()
