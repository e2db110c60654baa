"""Candidates of one Lease when the API server is away or slow, clocks step, and processes die between any two awaits."""

import asyncio
import contextlib
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st
from support.kube.election_candidates import LATEST, LEASE, TERMS, lives

from lastcall import errors
from lastcall.adapters.kube.resources import LEASES
from lastcall.model.leadership import JITTER
from lastcall_lab.simulation.network_faults import NetworkFault

NAMES = ("a", "b", "c")
conditions = st.builds(
    NetworkFault,
    programs=st.sets(st.sampled_from(NAMES)).map(lambda found: tuple(sorted(found))),
    refused=st.sampled_from((0.0, 0.3, 0.9, 1.0)),
    slow=st.sampled_from((0.0, 1.0, 7.0, 30.0)),
)
deeds = st.one_of(
    st.tuples(st.just("weather"), conditions, st.floats(0.5, 40)),
    st.tuples(st.just("down"), st.floats(0.5, 40)),
    st.tuples(st.just("kill"), st.integers(0, 2)),
    st.tuples(st.just("stop"), st.integers(0, 2)),
    st.tuples(st.just("skew"), st.integers(0, 2), st.sampled_from((-1e8, -2.0, 2.0, 1e8))),
    st.tuples(st.just("delete")),
    st.tuples(st.just("touch")),
)


def test_a_lost_api_server_ends_the_work_before_others_may_take_over():
    async def scene(world):
        first = world.candidate("a")
        await asyncio.sleep(1)
        world.candidate("b")
        await asyncio.sleep(20)
        cut = NetworkFault(programs=("a",), slow=1e9)
        world.weather.begin(cut)
        lost = world.now
        second = await world.until_led()
        while second is first:
            second = await world.until_led()
            await asyncio.sleep(0.05)
        assert lost + TERMS.renew - TERMS.retry - 0.1 < first.ended[0] < lost + TERMS.renew + 0.1
        assert second.acts[0] - first.acts[-1] > TERMS.lease - TERMS.renew - 0.1
        world.weather.end(cut)
        await asyncio.sleep(LATEST)
        assert not first.election.leads
        assert second.election.leads

    lives(scene)


def test_that_no_answer_came_is_said(caplog):
    async def scene(world):
        only = world.candidate("a")
        await asyncio.sleep(5)
        world.weather.begin(NetworkFault(slow=1e9))
        await asyncio.sleep(20)
        only.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await only.task

    lives(scene)
    told = [
        one.getMessage() for one in caplog.records if "lastcall-controller" in one.message or LEASE.name in one.message
    ]
    assert any(one.endswith(": no answer in time") for one in told)
    assert any(one.endswith("has to run out: no answer") for one in told)


def test_when_the_api_server_is_back_before_anybody_else_the_same_one_leads_again():
    async def scene(world):
        only = world.candidate("a")
        await asyncio.sleep(5)
        world.weather.down = True
        await asyncio.sleep(60)
        assert not only.election.leads
        world.weather.down = False
        await world.until_led(TERMS.retry * (1 + JITTER) + 1)
        assert len(only.ended) == 1
        assert (await world.record())["leaseTransitions"] == 1

    lives(scene)


def test_slow_answers_are_no_gain_in_time():
    async def scene(world):
        world.weather.begin(NetworkFault(slow=4.0))
        only = world.candidate("a")
        await asyncio.sleep(30)
        for _ in range(200):
            await asyncio.sleep(0.1)
            if only.election.leads and only.election._seen.lease.holder == "a_0":
                written = datetime.fromisoformat(only.election._seen.lease.spec.renew_time).timestamp()
                sent = written - (only.clock.wall() - world.now)
                assert only.election.leading_until <= sent + TERMS.renew + 0.001

    lives(scene)


def test_steps_of_the_wall_clocks_change_nothing():
    async def scene(world):
        first = world.candidate("a")
        await asyncio.sleep(1)
        second = world.candidate("b")
        for step in (-2.0, 86400 * 365, -86400 * 365 * 20, 3, 2, 1, 0):
            first.clock.skew = step
            second.clock.skew = -step
            await asyncio.sleep(TERMS.lease)
        assert [who for _, who in world.leaders] == ["a_0"]
        assert len(first.ended) == 0

    lives(scene)


class Story:
    """Deeds one after the other, each some seconds after the one before; who ends is started anew."""

    def __init__(self, world, number):
        self.world = world
        self.now = [world.candidate(name) for name in NAMES[:number]]
        self.faults = []

    async def do(self, what, *rest):
        await getattr(self, what)(*rest)

    async def weather(self, condition, seconds):
        self.faults.append(asyncio.create_task(self._lasts(condition, seconds)))

    async def _lasts(self, condition, seconds):
        self.world.weather.begin(condition)
        await asyncio.sleep(seconds)
        self.world.weather.end(condition)

    async def down(self, seconds):
        self.faults.append(asyncio.create_task(self._down(seconds)))

    async def _down(self, seconds):
        self.world.weather.down = True
        await asyncio.sleep(seconds)
        self.world.weather.down = False

    async def kill(self, index):
        old = self.now[index % len(self.now)]
        old.process.kill()
        await self._again(old)

    async def stop(self, index):
        old = self.now[index % len(self.now)]
        old.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await old.task
        await self._again(old)

    async def _again(self, old):
        await asyncio.sleep(0.5)
        self.now[self.now.index(old)] = self.world.candidate(old.name, old.life + 1)

    async def skew(self, index, seconds):
        self.now[index % len(self.now)].clock.skew += seconds

    async def delete(self):
        with contextlib.suppress(errors.NotFound):
            await self.world.admin.delete(LEASES, LEASE.name, namespace=LEASE.namespace)

    async def touch(self):
        patch = {"metadata": {"labels": {"at": str(int(self.world.now))}}}
        with contextlib.suppress(errors.NotFound):
            await self.world.admin.patch(LEASES, LEASE.name, patch, namespace=LEASE.namespace)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 3), st.lists(st.tuples(st.floats(0.05, 20), deeds), max_size=8))
def test_never_two_lead_at_once_and_somebody_does_when_all_is_well_again(number, deeds):
    async def scene(world):
        story = Story(world, number)
        for pause, deed in deeds:
            await asyncio.sleep(pause)
            await story.do(*deed)
        for fault in story.faults:
            await fault
        leader = await world.until_led()
        await asyncio.sleep(TERMS.lease * 2)
        assert leader.election.leads

    lives(scene)


def handed_over(fuse):
    """A candidate takes the lease while it is killed after so many steps; another is there."""

    async def scene(world):
        first = world.candidate("a", fuse=fuse)
        await asyncio.sleep(0.3)
        world.candidate("b")
        await asyncio.sleep(2.2)
        if first.process.alive:
            first.task.cancel()
        await asyncio.sleep(0.2)
        steps, alive = first.process.steps, first.process.alive
        first.process.kill()
        leader = await world.until_led()
        assert leader.name == "b"
        return steps, alive

    return lives(scene)


def test_killed_between_any_two_awaits():
    steps, alive = handed_over(None)
    assert alive
    for fuse in range(steps + 1):
        handed_over(fuse)
