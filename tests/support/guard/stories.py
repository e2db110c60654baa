"""Stories of chance about a guarded application: clients, faults, and guards that die at each await; one story for a seed.

Judged from what the application lost, never from what the guard recorded of it.
"""

import asyncio
from collections import Counter
from random import Random

from support.guard.reviews import CONTROLLER, PERSON
from support.guard.world import GuardWorld

from lastcall.aio import cancel_and_wait
from lastcall.errors import TooManyRequests, Unavailable

PATIENCE = 2500.0
"""Seconds after which a request that nobody repeats has been given up and undone."""

FAULTS = (
    "kill the leader",
    "kill the replica that answers",
    "fail a request to the API server",
    "take the API server away",
    "freeze the application",
    "silence the application",
    "hang the application",
    "have the application lie",
    "have the application flap",
    "be short of a member",
    "lose what was prepared",
    "roll the workload",
    "shut the node down",
)


class ChanceWorld(GuardWorld):
    """A cluster whose API server fails by chance until ``clear_up``; ``struck`` counts the faults."""

    def __init__(self, random, **settings):
        super().__init__(trouble=self._strike, **settings)
        self._random = random
        self._rate = random.choice([0, 0, 0.05, 0.3])
        self._is_away = False
        self.struck = Counter()

    def _strike(self, verb):
        if self._is_away:
            raise Unavailable("connection refused")
        if self._random.random() < self._rate:
            self.struck["fail a request to the API server"] += 1
            raise self._random.choice([Unavailable("no answer"), TooManyRequests("wait", code=429)])

    async def take_server_away(self, seconds):
        self.struck["take the API server away"] += 1
        self._is_away = True
        await self.sleep(seconds)
        self._is_away = False

    def clear_up(self):
        self._rate, self._is_away = 0, False

    async def ask_dying_replica(self, name, after, **how):
        """The replica is killed while it answers: with failurePolicy Fail the request is refused."""
        asking = asyncio.ensure_future(self.ask(name, **how))
        await self.sleep(after)
        if asking.done():
            await asking
            return
        self.struck["kill the replica that answers"] += 1
        await cancel_and_wait(asking)


async def ask_now_and_then(world, random, until):
    while world.clock.boottime() < until:
        await world.sleep(random.choice([0, 0.5, 5, 30]))
        name = f"db-{random.randrange(world.replicas)}"
        how = {
            "user": random.choice([PERSON, CONTROLLER]),
            "evict": random.random() < 0.5,
            "guard": random.randrange(2),
        }
        if random.random() < 0.1:
            await world.ask_dying_replica(name, random.choice([0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.5]), **how)
        else:
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
    world.struck["shut the node down"] += 1
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
        world.struck["kill the leader"] += 1
        await world.kill_leader()
        await world.sleep(random.choice([0, 0, 5]))
        world.lead()


async def restart_server(world, random, until):
    while world.clock.boottime() < until:
        await world.sleep(random.choice([5, 60, 300]))
        await world.take_server_away(random.choice([0.5, 10, 60]))


async def trouble_application(world, random, until):
    application = world.application
    while world.clock.boottime() < until:
        await world.sleep(random.choice([1, 10, 60]))
        fault = random.choice(FAULTS[4:12])
        world.struck[fault] += 1
        match fault:
            case "freeze the application":
                application.is_frozen = not application.is_frozen
            case "silence the application":
                application.is_silent = not application.is_silent
            case "hang the application":
                application.delay = random.choice([0.05, 8, 1000])
            case "have the application lie":
                application.is_lying = not application.is_lying
            case "have the application flap":
                await flap(application, random.choice([0.3, 1, 4]), world)
            case "be short of a member":
                application.is_short = not application.is_short
            case "lose what was prepared":
                application.lose_preparations()
            case "roll the workload":
                world.revision = random.choice(["old", "new"])
    application.is_frozen = application.is_silent = application.is_short = application.is_lying = False
    application.delay = 0.05


async def flap(application, pause, world):
    """Twenty times frozen, and not."""
    for _ in range(20):
        application.is_frozen = not application.is_frozen
        await world.sleep(pause)


async def play(seed):
    """One story; the world at its end."""
    random = Random(seed)
    world = ChanceWorld(random, replicas=random.choice([1, 2, 3, 5]), max_unavailable=random.choice([1, 1, 2, "50%"]))
    world.application.seconds = random.choice([0.5, 5, 100])
    world.lead()
    making = asyncio.ensure_future(world.run_stateful_set())
    until = random.choice([60, 600, 2000])
    await asyncio.gather(
        ask_now_and_then(world, random, until),
        kill_leaders(world, random, until if random.random() < 0.5 else 0),
        trouble_application(world, random, until if random.random() < 0.7 else 0),
        restart_server(world, random, until if random.random() < 0.3 else 0),
        *([shut_down_the_node(world, random, until)] if random.random() < 0.4 else ()),
    )
    world.clear_up()
    if random.random() < 0.8:
        await ask_until_all_have_gone(world)
    else:
        await world.sleep(PATIENCE)
    making.cancel()
    await world.close()
    return world


def check_promises(world, seed):
    """AssertionError with the first promise that is broken."""
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
