"""Stories of chance: clients, faults and leaders that die at each await; judged from what the application lost."""

import asyncio
from random import Random

import pytest
from support.guard.reviews import CONTROLLER, PERSON
from support.guard.world import GuardWorld

from lastcall.errors import TooManyRequests, Unavailable
from lastcall_lab import virtual

SEEDS = range(300)
PATIENCE = 2500.0
"""Seconds after which a request that nobody repeats has been given up and undone."""


class Weather:
    """Requests to the API server fail by chance, until it clears up."""

    def __init__(self, random):
        self._random = random
        self.rate = random.choice([0, 0, 0.05, 0.3])

    def strike(self, verb):
        if self._random.random() < self.rate:
            raise self._random.choice([Unavailable("no answer"), TooManyRequests("wait", code=429)])


async def ask_now_and_then(world, random, until):
    while world.clock.boottime() < until:
        await world.sleep(random.choice([0, 0.5, 5, 30]))
        name = f"db-{random.randrange(world.replicas)}"
        how = {
            "user": random.choice([PERSON, CONTROLLER]),
            "evict": random.random() < 0.5,
            "guard": random.randrange(2),
        }
        await world.ask(name, **how)


async def ask_until_all_have_gone(world):
    """As a drain that goes on; then nobody is held any more, and each replacement comes up.

    All are asked for: one that nobody asks for any more keeps its place for 20 minutes.
    """
    uids = {pod.metadata.uid for pod in world.pods.values()}
    held = [one.name for one in world.policy.status.pods if one.uid in uids]
    await asyncio.gather(*map(world.ask_until_gone, held))
    await world.sleep(120)


async def shut_down_the_node(world, random, until):
    """Its agent ends its pods; or the shutdown is cancelled before."""
    await world.sleep(random.uniform(0, until))
    names = [name for name, pod in world.pods.items() if pod.metadata.deletion_timestamp is None]
    seconds = random.choice([20, 120])
    limit = seconds * random.choice([0.3, 0.8])
    await world.shut_down(*random.sample(names, random.randrange(len(names) + 1)), seconds=seconds, limit=limit)
    await world.sleep(random.choice([0, 5, 100]))
    world.shutdowns.record("n1", None)


async def kill_leaders(world, random, until):
    """At any await; for a while two may lead, as after a pause of the old one."""
    while world.clock.boottime() < until:
        await world.sleep(random.choice([0.02, 0.3, 3, 40]))
        await world.kill_leader()
        await world.sleep(random.choice([0, 0, 5]))
        world.lead()


async def trouble_application(world, random, until):
    application = world.application
    while world.clock.boottime() < until:
        await world.sleep(random.choice([1, 10, 60]))
        match random.randrange(5):
            case 0:
                application.is_frozen = not application.is_frozen
            case 1:
                application.is_silent = not application.is_silent
            case 2:
                application.is_short = not application.is_short
            case 3:
                application.lose_preparations()
            case 4:
                world.revision = random.choice(["old", "new"])
    application.is_frozen = application.is_silent = application.is_short = False


async def play(seed):
    random = Random(seed)
    weather = Weather(random)
    world = GuardWorld(
        replicas=random.choice([1, 2, 3, 5]), trouble=weather.strike, max_unavailable=random.choice([1, 1, 2, "50%"])
    )
    world.application.seconds = random.choice([0.5, 5, 100])
    world.lead()
    making = asyncio.ensure_future(world.run_stateful_set())
    until = random.choice([60, 600, 2000])
    await asyncio.gather(
        ask_now_and_then(world, random, until),
        kill_leaders(world, random, until if random.random() < 0.5 else 0),
        trouble_application(world, random, until if random.random() < 0.7 else 0),
        *([shut_down_the_node(world, random, until)] if random.random() < 0.4 else ()),
    )
    weather.rate = 0
    if random.random() < 0.8:
        await ask_until_all_have_gone(world)
    else:
        await world.sleep(PATIENCE)
    making.cancel()
    await world.close()
    return world


def check_promises(world, seed):
    assert all(moved for _, _, moved, by in world.went if by != "deadline"), (
        f"seed {seed}: a pod went with its work: {world.went}"
    )
    uids = [uid for _, uid, *_ in world.went]
    assert len(uids) == len(set(uids)), f"seed {seed}: a pod was deleted twice"
    taken = [one for one in world.policy.status.pods if one.is_reserving and one.uid in uids]
    assert not taken, f"seed {seed}: a place is taken for ever: {taken}"
    left = {one.uid for one in world.policy.status.pods if one.prepared_at}
    assert set(world.application.moves) <= left, f"seed {seed}: what was prepared is neither held nor undone"
    check_members(world, seed)


def check_members(world, seed):
    """No more members are away at a time than the policy allows: from their end until a successor is ready.

    But for a node that goes down: its deadline wins.
    """
    if any(by == "deadline" for *_, by in world.went):
        return
    most = world.policy.spec.max_unavailable
    allowed = -(-world.replicas // 2) if most == "50%" else most
    away = sorted((at, 1) for at, *_ in world.went) + sorted((at, -1) for at in world.replaced)
    count = 0
    for _, change in sorted(away):
        count += change
        assert count <= max(1, allowed), f"seed {seed}: {count} members are away"


@pytest.mark.parametrize("first", range(0, len(SEEDS), 25))
def test_no_work_is_lost_and_nothing_is_held_for_ever(first):
    for seed in SEEDS[first : first + 25]:
        check_promises(virtual.run(play(seed)), seed)
