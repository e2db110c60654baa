"""The world of pods in a real containerd."""

import asyncio
from contextlib import asynccontextmanager

from lastcall.adapters.clock import SystemClock
from lastcall.lab.containerd import BUSYBOX, LabCriRuntime, why_not
from support.containerd import shared_containerd
from support.world import World

__all__ = ["containerd_world", "why_not"]


@asynccontextmanager
async def containerd_world(tmp_path):
    """A runtime object on the session's containerd, without pods; its pods are removed afterwards."""
    containerd = await asyncio.to_thread(shared_containerd)
    tmp_path.chmod(0o777)

    async def opened():
        runtime = LabCriRuntime(
            containerd.endpoint, SystemClock(), directory=containerd.directory, cgroup=containerd.cgroup
        )
        await runtime.open()
        return runtime

    async def restarted():
        await world.runtime.close()
        world.runtime = await opened()

    world = World(name="containerd", runtime=await opened(), directory=tmp_path, restarted=restarted, image=BUSYBOX)
    try:
        yield world
    finally:
        await world.runtime.close()
        await containerd.remove_pods()
