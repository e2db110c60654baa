"""A program that starts pods as processes and then does one thing for ever; made to be killed.

Arguments: the state directory, a file with a JSON list of Pods, and ``start_pod``, ``stop_container`` (each container, a long grace)
or ``hook`` (each container's own preStop hook); the last two when the containers have said that they are ready.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from lastcall.adapters.host.clock import SystemClock
from lastcall.model.pods import Pod
from lastcall_lab.processes import ProcessRuntime

sys.path.insert(0, str(Path(__file__).parents[2]))
from support.runtimes.pod_scripts import eventually  # noqa: E402  (the tests' folder must be known first)


async def main(state_dir, file, verb):
    runtime = ProcessRuntime(Path(state_dir), SystemClock())
    pods = msgspec.json.decode(Path(file).read_bytes(), type=list[Pod])
    lives = await asyncio.gather(*(runtime.start_pod(pod) for pod in pods))
    for container in (one for pod in pods for one in pod.spec.containers):
        told = Path(container.env[0].value)
        await eventually(lambda told=told: told.exists() and bool(told.read_bytes()))
    if verb == "stop":
        await asyncio.gather(*(runtime.stop_container(one, 600) for live in lives for one in live.containers.values()))
    if verb == "hook":
        hooks = [(live, one.name, one.pre_stop) for live in lives for one in live.pod.spec.containers]
        await asyncio.gather(*(runtime.run_hook(live, name, hook, 600) for live, name, hook in hooks))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
