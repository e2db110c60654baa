"""The annotation that says whether an agent is armed: written at changes, renewed, and never during a shutdown."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest
from support.agents.face_cluster import in_cluster

from lastcall import names
from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall.graceful.agent import AgentStatus
from lastcall.graceful.cluster.standing_reporter import StandingReporter
from lastcall.graceful.standing import agent_standing, is_kubelet_lock
from lastcall.graceful.state_machine import AgentState
from lastcall.model.agent_standing import LEAST_SECONDS, RENEW_SECONDS, read_standing
from lastcall.model.shutdown import ShutdownMode
from lastcall.ports.node import Inhibitor
from lastcall_lab import virtual

ARMED = AgentStatus(
    state=AgentState.ARMED,
    armed=True,
    logind_reachable=True,
    retries=0,
    requested=30.0,
    granted=60.0,
    degraded=False,
    sentence="armed: 30s\nfor the pods",
)


def describe(status, wall=1.5e9, **fields):
    known = {"observes": False, "boot_id": "b1", "pod_uid": "", "kubelet_lock": False, "lost_identities": ()}
    return agent_standing(status, wall=wall, **known | fields)


class Objects:
    """The part of ports.cluster.NodeObjects that is used."""

    def __init__(self, clock):
        self.clock, self.connected, self.fails, self.hangs, self.written = clock, True, False, False, []
        self.attempts = 0

    def is_connected(self):
        return self.connected

    async def patch_node(self, patch):
        self.attempts += 1
        if self.hangs:
            await self.clock.sleep(1000)
        if self.fails:
            raise Unavailable("the API server is away")
        text = patch["metadata"]["annotations"][names.AGENT_STANDING]
        self.written.append((self.clock.boottime(), text and msgspec.json.decode(text)["armed"]))

    @property
    def said(self):
        return [armed for _, armed in self.written]


class World:
    """A reporter that runs in virtual time."""

    def __init__(self):
        self.clock = virtual.VirtualClock()
        self.objects, self.status = Objects(self.clock), ARMED

    async def observe(self):
        return describe(self.status, self.clock.wall())


def in_world(test):
    def wrapped():
        async def main():
            world = World()
            world.reporter = StandingReporter(world.objects, world.clock, world.observe)
            running = asyncio.create_task(world.reporter.run())
            await test(world)
            await cancel_and_wait(running)

        virtual.run(main())

    return wrapped


@in_world
async def test_it_is_written_at_a_change_and_now_and_then(world):
    await world.clock.sleep(RENEW_SECONDS)
    assert world.objects.said == [True]
    await world.clock.sleep(10)
    assert world.objects.said == [True, True]
    world.status = replace(ARMED, armed=False, state=AgentState.ACQUIRING)
    await world.clock.sleep(LEAST_SECONDS)
    assert world.objects.said == [True, True, False]


@in_world
async def test_a_lock_that_comes_and_goes_does_not_write_without_end(world):
    for number in range(600):
        world.status = replace(ARMED, armed=bool(number % 2))
        await world.clock.sleep(1)
    times = [at for at, _ in world.objects.written]
    assert 5 < len(times) <= 600 / LEAST_SECONDS
    assert min(after - before for before, after in zip(times, times[1:], strict=False)) >= LEAST_SECONDS


@pytest.mark.parametrize("state", [AgentState.ENDING, AgentState.RELEASED])
def test_nothing_is_written_during_a_shutdown_nor_is_it_removed_then(state):
    @in_world
    async def story(world):
        await world.clock.sleep(10)
        world.status = replace(ARMED, state=state, sentence="ending the pods")
        await world.clock.sleep(2 * RENEW_SECONDS)
        await world.reporter.remove()
        assert world.objects.said == [True]

    story()


@in_world
async def test_an_agent_that_ends_takes_it_away(world):
    await world.reporter.remove()
    assert world.objects.said == [], "nothing of an earlier run is touched before the first write"
    await world.clock.sleep(10)
    await world.reporter.remove()
    assert world.objects.said == [True, None]


@in_world
async def test_an_api_server_that_is_away_is_tried_again_and_holds_up_no_end(world):
    world.objects.fails = True
    await world.clock.sleep(100)
    assert 1 < world.objects.attempts <= 4
    world.objects.connected = world.objects.fails = False
    await world.clock.sleep(100)
    assert world.objects.said == []
    world.objects.connected = True
    await world.clock.sleep(LEAST_SECONDS + 10)
    assert world.objects.said == [True]
    world.objects.hangs, before = True, world.clock.boottime()
    await world.reporter.remove()
    assert world.clock.boottime() - before <= 1.0


def test_what_is_said():
    found = describe(ARMED, observes=True, pod_uid="u", lost_identities=["own"], kubelet_lock=True)
    assert found.mode is ShutdownMode.OBSERVE
    assert found.message == "armed: 30s for the pods"
    assert (found.granted_seconds, found.pod_uid, found.lost_identities) == (60.0, "u", ("own",))
    assert found.reported == datetime.fromtimestamp(1.5e9, UTC)
    assert describe(replace(ARMED, granted=float("inf"))).granted_seconds is None
    assert describe(None) is None


@pytest.mark.parametrize(
    ("lock", "expected"),
    [
        ({}, True),
        ({"who": "lastcall"}, False),
        ({"mode": "block"}, False),
        ({"what": "sleep"}, False),
        ({"what": "sleep:shutdown"}, True),
    ],
)
def test_the_kubelets_lock(lock, expected):
    known = {"what": "shutdown", "who": "kubelet", "why": "", "mode": "delay", "uid": 0, "pid": 1}
    assert is_kubelet_lock(Inhibitor(**known | lock)) is expected


@in_cluster
async def test_the_kubelets_identity_may_write_it(cluster):
    async def observe():
        return describe(ARMED)

    reporter = StandingReporter(cluster._objects, cluster.clock, observe)
    running = asyncio.create_task(reporter.run())
    await cluster.clock.sleep(10)
    found = read_standing((await cluster.node())["metadata"]["annotations"])
    assert found == await observe()
    await cancel_and_wait(running)
    await reporter.remove()
    assert names.AGENT_STANDING not in (await cluster.node())["metadata"].get("annotations", {})
