"""The world of plain processes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.processes import ProcessRuntime
from support.world import World


@asynccontextmanager
async def processes_world(tmp_path: Path) -> AsyncIterator[World]:
    """Its state is in ``tmp_path/state``. Every process is killed at the end."""
    state = tmp_path / "state"
    directory = tmp_path / "shared"
    directory.mkdir()

    async def restarted() -> ProcessRuntime:
        world.runtime.close()
        world.runtime = ProcessRuntime(state, SystemClock())
        return world.runtime

    world = World(
        name="processes", runtime=ProcessRuntime(state, SystemClock()), directory=directory, restarted=restarted
    )
    try:
        yield world
    finally:
        for live in await world.runtime.refresh():
            await world.runtime.remove(live.pod.metadata.uid)
        world.runtime.close()
