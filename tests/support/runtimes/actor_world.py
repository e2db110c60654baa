"""The world of actors, which play the scripts of ``support.runtimes.pod_scripts``."""

from contextlib import asynccontextmanager

from support.runtimes.pod_scripts import OBEDIENT, STUBBORN
from support.runtimes.runtime_world import World

from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.fakes.actor_runtime import ActorRuntime, ContainerScript

ENDS = {"exit 0": ContainerScript(lives=0.1), "exit 3": ContainerScript(lives=0.1, code=3)}


def script(pod, name, attempt):
    containers = [*(pod.spec.init_containers or ()), *pod.spec.containers]
    said = next(one for one in containers if one.name == name).command[-1]
    if said == OBEDIENT:
        return ContainerScript(code=7, hook=1000.0)
    if said == STUBBORN:
        return ContainerScript(after_term=float("inf"))
    return ENDS[said]


@asynccontextmanager
async def actors_world(tmp_path):
    """Nothing of it outlives the test."""
    runtime = ActorRuntime(SystemClock(), script=script)

    async def restarted():
        runtime.repeat_ends()
        return runtime

    yield World(name="actors", runtime=runtime, directory=tmp_path, restarted=restarted)
    runtime.pull_power()
