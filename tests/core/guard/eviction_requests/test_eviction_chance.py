"""Stories of chance with EvictionRequests: requesters change their minds, leaders die, the application and budgets resist."""

import asyncio
from datetime import timedelta
from random import Random

import pytest
from support.guard.eviction_world import EvictionWorld

from lastcall.errors import LastcallError, Unavailable
from lastcall.guard.eviction_requests.decisions.responder_turns import HEARTBEAT_SECONDS
from lastcall.model.eviction_requests import ENDED, ResponderState
from lastcall_lab import virtual

EVICTOR = "imperative-eviction.k8s.io/evictor"


async def change_minds(world, random, until):
    """Of one requester, for each pod that is there."""
    while world.clock.boottime() < until:
        await world.sleep(random.choice([0.5, 5, 30]))
        if not world.pods:
            continue
        pod = random.choice([*world.pods.values()])
        try:
            await random.choice([world.requester.request, world.requester.request, world.requester.withdraw])(
                pod.metadata
            )
            if random.random() < 0.1:
                await world.requester.forget(pod.metadata)
                await world.collect_garbage()
        except LastcallError:
            continue  # the object was changed meanwhile


async def kill_leaders(world, random, until):
    while world.clock.boottime() < until:
        await world.sleep(random.choice([0.02, 0.3, 3, 40, 400]))
        await world.kill_leader()
        await world.sleep(random.choice([0, 0, 5, HEARTBEAT_SECONDS + 1]))
        world.lead()


async def trouble(world, random, until):
    application = world.application
    while world.clock.boottime() < until:
        await world.sleep(random.choice([1, 10, 60]))
        match random.randrange(4):
            case 0:
                application.is_frozen = not application.is_frozen
            case 1:
                application.is_silent = not application.is_silent
            case 2:
                application.lose_preparations()
            case 3:
                world.budget = "" if world.budget else "Cannot evict pod"
    application.is_frozen = application.is_silent = False
    world.budget = ""


async def play(seed):
    random = Random(seed)
    rate = random.choice([0, 0, 0.1])

    def strike(verb):
        if random.random() < rate:
            raise Unavailable("no answer")

    world = EvictionWorld(replicas=random.choice([1, 2, 3]), has_responder=random.random() < 0.9, trouble=strike)
    await world.open_namespace()
    world.application.seconds = random.choice([0.5, 5, 100])
    world.lead()
    making = asyncio.ensure_future(world.run_stateful_set())
    until = random.choice([60, 600])
    await asyncio.gather(
        change_minds(world, random, until),
        kill_leaders(world, random, until if random.random() < 0.5 else 0),
        trouble(world, random, until if random.random() < 0.7 else 0),
    )
    rate = 0
    await settle(world, random)
    making.cancel()
    await world.close()
    return world


async def settle(world, random):
    """All is wanted, or nothing, and both come to an end."""
    wanted = random.random() < 0.5
    for pod in list(world.pods.values()):
        await (world.requester.request if wanted else world.requester.withdraw)(pod.metadata)
    uids = {pod.metadata.uid for pod in world.pods.values()}
    for _ in range(400):
        await world.sleep(10)
        left = {pod.metadata.uid for pod in world.pods.values()}
        if not uids & left if wanted else all(one.is_over for one in await world.read_evictions()):
            break
    await world.sleep(60)
    left = {pod.metadata.uid for pod in world.pods.values()}
    assert not wanted or not uids & left, "a pod is held for ever"
    assert wanted or not world.application.moves, "what was prepared is not undone"


def check_promises(world, seed):
    assert all(safe for _, _, safe, _ in world.went), f"seed {seed}: a pod went with its work: {world.went}"
    uids = [uid for _, uid, *_ in world.went]
    assert len(uids) == len(set(uids)), f"seed {seed}: a pod was evicted twice"
    for _, uid, evictions in world.tries:
        [current] = [one for one in evictions if not one.is_over] or [None]
        assert current, f"seed {seed}: pod {uid} was evicted though nobody wanted it"
        for target in current.status.target_responders:
            if target.name != EVICTOR:
                check_turn(current, target, seed)


def check_turn(eviction, target, seed):
    """All others are done, or were silent for too long, when the evictor asks."""
    said = eviction.find_progress(target.name)
    assert target.state in ENDED, f"seed {seed}: {target} is not done"
    if target.state is ResponderState.COMPLETED:
        assert said.completion_time
    else:
        began = eviction.find_progress(EVICTOR).start_time
        heard = said.heartbeat_time or said.start_time
        assert target.state is ResponderState.INTERRUPTED
        assert began - heard >= timedelta(seconds=HEARTBEAT_SECONDS - 1), f"seed {seed}: {said}"


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_no_pod_goes_before_its_application_is_ready_and_none_is_held_for_ever(first):
    for seed in range(first, first + 10):
        check_promises(virtual.run(play(seed)), seed)
