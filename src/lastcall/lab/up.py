"""``lastcall lab up``: a control plane and some machines as one process, until Ctrl-C, SIGTERM or ``lastcall lab down``."""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from lastcall.adapters.clock import SystemClock
from lastcall.aio import Group, first
from lastcall.errors import Unavailable
from lastcall.lab.apiserver.database import Database
from lastcall.lab.apiserver.store import Store
from lastcall.lab.control_plane import ControlPlane, Place
from lastcall.lab.machines import LocalMachines
from lastcall.lab.pages import Pages

log = logging.getLogger(__name__)

UP_SECONDS = 30.0
"""Within which everything must have started."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the command line says. ``data`` is None for a lab that leaves nothing behind."""

    nodes: int
    runtime: str
    kubeconfig: Path
    data: Path | None
    port: int = 0
    without: Collection[str] = ()


def default_kubeconfig() -> Path:
    """Where the lab's kubeconfig lies if nobody says otherwise (XDG base directories)."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "lastcall" / "lab.kubeconfig"


async def up(wanted: Wanted, *, tell: Callable[[ControlPlane, LocalMachines], None]) -> None:
    """Runs the lab; ``tell`` is called once it can be used. The kubeconfig is removed at the end."""
    async with _directory(wanted.data) as directory, _store(directory, kept=wanted.data is not None) as store:
        clock, random = SystemClock(), SystemRandom()
        place = Place(directory / "control-plane", wanted.kubeconfig, port=wanted.port)
        plane = ControlPlane(place, clock, random, without=wanted.without, store=store)
        await plane.prepare()
        machines = LocalMachines(plane, directory, clock, random, count=wanted.nodes, runtime=wanted.runtime)
        plane.pages = Pages(plane.server, plane.server.authenticated, machines, plane.stop)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, plane.stop)
        group = Group()
        group.start(_told(plane, machines, tell), "tell")
        try:
            await first(plane.run(), machines.run())
        finally:
            await group.cancel()
            await machines.clean_up()
            with contextlib.suppress(OSError):
                await asyncio.to_thread(wanted.kubeconfig.unlink)


async def _told(
    plane: ControlPlane, machines: LocalMachines, tell: Callable[[ControlPlane, LocalMachines], None]
) -> None:
    try:
        async with asyncio.timeout(UP_SECONDS):
            await plane.up.wait()
            await machines.up()
    except TimeoutError:
        raise Unavailable(f"the lab is not up after {UP_SECONDS:g} s") from None
    tell(plane, machines)


@contextlib.asynccontextmanager
async def _directory(data: Path | None) -> AsyncIterator[Path]:
    """The one that is kept, or one that goes with the lab."""
    if data is not None:
        await asyncio.to_thread(data.mkdir, parents=True, exist_ok=True)
        yield data
        return
    directory = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="lastcall-lab-"))
    try:
        yield directory
    finally:
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)


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
