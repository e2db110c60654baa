"""The world of plain processes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.runtimes.runtime_world import World

from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.processes import ProcessRuntime


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
        for live in await world.runtime.refresh_pods():
            await world.runtime.remove_pod(live.pod.metadata.uid)
        world.runtime.close()
