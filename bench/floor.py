"""The floor: the stop calls of the runtime's adapter made bare, all at once, and nothing else.

A program of its own, as the agent is. Arguments: ``processes STATE_DIR`` or ``containerd ENDPOINT``. It says ``ready``
and waits for a line; then it stops every pod, and prints as JSON when it began, when the last stop and when the last
``tear_down_pod`` (the sandbox's teardown) returned, in CLOCK_BOOTTIME seconds.
"""

import asyncio
import json
import sys
from pathlib import Path

from lastcall.adapters.cri.runtime import CriRuntime
from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.processes import ProcessRuntime

GRACE = 30.0


async def main(kind: str, where: str) -> None:
    clock = SystemClock()
    runtime = ProcessRuntime(Path(where), clock) if kind == "processes" else CriRuntime(where, clock)
    pods = await runtime.refresh_pods()  # opens the connection too
    await _told()
    began = clock.boottime()
    await asyncio.gather(*(runtime.stop_container(c, GRACE) for live in pods for c in live.containers.values()))
    stopped = clock.boottime()
    await asyncio.gather(*map(runtime.tear_down_pod, pods))
    print(json.dumps({"began": began, "stopped": stopped, "finished": clock.boottime()}), flush=True)
    await runtime.close() if isinstance(runtime, CriRuntime) else runtime.close()


async def _told() -> None:
    """Waits in the event loop, as the agent does for the bus."""
    line = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, line.set)
    print("ready", flush=True)
    await line.wait()
    asyncio.get_running_loop().remove_reader(0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
