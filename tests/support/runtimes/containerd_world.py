"""The world of pods in a real containerd."""

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from support.runtimes.private_containerd import shared_containerd
from support.runtimes.runtime_world import World

from lastcall.adapters.host.clock import SystemClock
from lastcall_lab import containerd as lab
from lastcall_lab.containerd import BUSYBOX, LabCriRuntime


@functools.cache
def why_not():
    """The reason to skip, or None; it looks at files, for which an asynchronous fixture needs a thread."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lab.unavailable_reason).result()


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
