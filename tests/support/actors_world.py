"""The world of actors, which play the scripts of ``support.pods``."""

from contextlib import asynccontextmanager

from lastcall.adapters.clock import SystemClock
from lastcall.lab.actors import ActorRuntime, Behaviour
from support.pods import OBEDIENT, STUBBORN
from support.world import World

ENDS = {"exit 0": Behaviour(lives=0.1), "exit 3": Behaviour(lives=0.1, code=3)}


def script(pod, name, attempt):
    containers = [*(pod.spec.init_containers or ()), *pod.spec.containers]
    said = next(one for one in containers if one.name == name).command[-1]
    if said == OBEDIENT:
        return Behaviour(code=7, hook=1000.0)
    if said == STUBBORN:
        return Behaviour(after_term=float("inf"))
    return ENDS[said]


@asynccontextmanager
async def actors_world(tmp_path):
    """Nothing of it outlives the test."""
    runtime = ActorRuntime(SystemClock(), script=script)

    async def restarted():
        runtime.tell_again()
        return runtime

    yield World(name="actors", runtime=runtime, directory=tmp_path, restarted=restarted)
    runtime.pull()
