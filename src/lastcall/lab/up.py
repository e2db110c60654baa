"""``lastcall lab up``: a control plane and some machines as one process, until Ctrl-C, SIGTERM or ``lastcall lab down``."""

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Any

from lastcall.adapters.clock import SystemClock
from lastcall.aio import any_done, cancel, first, timeout
from lastcall.errors import InvalidInput, Unavailable
from lastcall.graceful import config as configuration
from lastcall.lab import private_files, runtimes
from lastcall.lab.apiserver.audit import Audit, appended
from lastcall.lab.apiserver.authorization.authorizer import Authorization
from lastcall.lab.apiserver.database import FILE, Database
from lastcall.lab.apiserver.store import Store
from lastcall.lab.control_plane import ControlPlane, Place
from lastcall.lab.host import PROPAGATION_DELAY, Site
from lastcall.lab.machines import LocalMachines
from lastcall.lab.pages import Pages
from lastcall.lab.redfish import Redfish
from lastcall.lab.shutdown_managers import Manager
from lastcall.lab.stopping import at_signals
from lastcall.lab.volumes.shelf import Directories
from lastcall.lab.volumes.storage import Storage

log = logging.getLogger(__name__)

CONFIG = Path(__file__).parent / "agent.yaml"
"""How the shutdown managers of the lab's nodes are configured."""

_PARTS = ("control-plane", "machines", "volumes")
"""What the lab keeps in its directory besides the database."""

UP_SECONDS = 120.0
"""Within which everything must have started."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the command line says. ``data`` is None for a lab that leaves nothing behind; ``delay`` is Site's."""

    nodes: int
    runtime: str
    kubeconfig: Path
    data: Path | None
    manager: Manager = Manager.LASTCALL
    delay: float = PROPAGATION_DELAY
    port: int = 0
    without: Collection[str] = ()
    failover: bool = False
    """``lastcall controller`` runs too."""
    authorization: Authorization = Authorization.RBAC
    audit_log: Path | None = None


Tell = Callable[[ControlPlane, LocalMachines], None]
Work = Callable[[], Coroutine[Any, Any, object]]


def default_kubeconfig() -> Path:
    """Where the lab's kubeconfig lies if nobody says otherwise (XDG base directories)."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "lastcall" / "lab.kubeconfig"


async def up(wanted: Wanted, *, tell: Tell) -> None:
    """Runs the lab until SIGINT, SIGTERM or SIGHUP; ``tell`` is called once it can be used.

    At the end nothing is left but what ``data`` keeps.
    """
    runtimes.check(wanted.runtime)
    stopped = asyncio.Event()
    at_signals(stopped.set)
    clock = SystemClock()
    with _audit(wanted.audit_log, clock) as audit:
        async with _directory(wanted.data) as directory, _store(directory, kept=wanted.data is not None) as store:
            await _live(wanted, directory, clock, store, audit, tell=tell, stopped=stopped)


async def _live(
    wanted: Wanted,
    directory: Path,
    clock: SystemClock,
    store: Store | None,
    audit: Audit,
    *,
    tell: Tell,
    stopped: asyncio.Event,
) -> None:
    random = SystemRandom()
    place = Place(directory / "control-plane", wanted.kubeconfig, port=wanted.port)
    storage = Storage(Directories(directory / "volumes"), clock)
    plane = ControlPlane(
        place,
        clock,
        random,
        without=wanted.without,
        storage=storage,
        store=store,
        audit=audit,
        authorization=wanted.authorization,
    )
    await plane.prepare()
    site = Site(
        clock=clock,
        random=random,
        directory=directory / "machines",
        storage=storage,
        runtime=wanted.runtime,
        manager=wanted.manager,
        delay=wanted.delay,
        config=configuration.read(CONFIG.read_bytes(), str(CONFIG)),
    )
    machines = LocalMachines(plane, site, count=wanted.nodes)
    bmcs = Redfish(machines, plane.bmc_password)
    plane.pages = Pages(plane.server, plane.server.permitted, machines, stopped.set, bmcs)
    beside = _failover(plane, directory, clock) if wanted.failover else asyncio.Event().wait
    try:
        await first(plane.run(), machines.run(), _attend(plane, machines, tell, stopped, beside))
    finally:
        await machines.clean_up()


def _failover(plane: ControlPlane, directory: Path, clock: SystemClock) -> Work:
    from lastcall.lab.failover import Failover  # noqa: PLC0415  (most labs do without, and it takes time to load)

    return Failover(plane, directory / "control-plane", clock).run


async def _attend(
    plane: ControlPlane,
    machines: LocalMachines,
    tell: Tell,
    stopped: asyncio.Event,
    beside: Work,
) -> None:
    """Tells when everything is up, and stops it when it is to. Unavailable if it does not get up.

    What runs ``beside`` it ends first, so that it can still say goodbye to the API server.
    """
    await _until_up(plane, machines, tell, stopped)
    await first(stopped.wait(), beside())
    plane.stop()
    await asyncio.Event().wait()  # the control plane ends, and with it everything


async def _until_up(plane: ControlPlane, machines: LocalMachines, tell: Tell, stopped: asyncio.Event) -> None:
    await plane.up.wait()
    began = asyncio.ensure_future(machines.up())
    end = asyncio.ensure_future(stopped.wait())
    try:
        async with timeout(UP_SECONDS):
            await any_done(began, end)
    except TimeoutError:
        raise Unavailable(f"the lab is not up after {UP_SECONDS:g} s") from None
    finally:
        await cancel(began)
    if not stopped.is_set():
        began.result()
        tell(plane, machines)
    await cancel(end)


@contextlib.asynccontextmanager
async def _directory(data: Path | None) -> AsyncIterator[Path]:
    """The one that is kept, or one that goes with the lab."""
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
    """Makes the directory and those below it that the lab writes to, for their owner alone; mends older ones.

    A directory in which other programs keep files too, such as ``/tmp``, is left as it is.
    """
    shared = data.is_dir() and any(data.iterdir()) and not (data / FILE).exists()
    if shared:
        log.warning("--data: %s has files of other programs: its mode is left as it is", data)
    else:
        private_files.make_directory(data)
    for part in _PARTS:
        private_files.make_directory(data / part)


@contextlib.contextmanager
def _audit(path: Path | None, clock: SystemClock) -> Iterator[Audit]:
    if path is None:
        yield Audit(clock)
        return
    with contextlib.ExitStack() as stack:
        try:
            sink = stack.enter_context(appended(path))
        except OSError as error:
            raise InvalidInput("--audit-log", [f"{path} cannot be written: {error.strerror}"]) from None
        yield Audit(clock, sink=sink)


@contextlib.asynccontextmanager
async def _store(directory: Path, *, kept: bool) -> AsyncIterator[Store | None]:
    if not kept:
        yield None
        return
    database = await Database.open(directory)
    try:
        yield database.store
    finally:
        await database.close()
