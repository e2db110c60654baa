"""Candidates of one Lease in virtual time, at the lab's API server, in all weathers: never two that lead at once."""

import asyncio
import contextlib
import json
from datetime import datetime
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall import errors
from lastcall.adapters.kube.client import MERGE, Client
from lastcall.adapters.kube.election import Election
from lastcall.adapters.kube.resources import LEASES
from lastcall.adapters.kube.watching import Key
from lastcall.aio import cancel
from lastcall.lab import virtual
from lastcall.lab.apiserver import ApiServer
from lastcall.lab.apiserver.inprocess import InProcess
from lastcall.lab.simulation.clocks import NodeClock
from lastcall.lab.simulation.weather import Condition, Exposed, Weather
from lastcall.lab.virtual import Process
from lastcall.model.leadership import JITTER, Terms

LEASE = Key("kube-system", "lastcall")
TERMS = Terms()
LATEST = TERMS.lease + TERMS.retry * (1 + JITTER) + TERMS.renew / 2 + 1.5
"""Seconds after which there is a leader at the latest: a lease runs out, a pause, an attempt that hangs."""


class Candidate:
    """One life of a program that leads; ``acts`` says when it has done so."""

    def __init__(self, world, name, life, *, fuse=None):
        self.name, self.life = name, life
        self.acts, self.ended = [], []
        self.clock = NodeClock(world.clock)
        self.process = Process(f"{name}-{life}", fuse=fuse)
        self._world = world
        transport = Exposed(InProcess(world.server), world.weather, name)
        self.election = Election(
            Client(transport, manager="lastcall"),
            LEASE,
            f"{name}_{life}",
            clock=self.clock,
            random=Random(f"{name}/{life}"),
            terms=TERMS,
        )
        self.task = self.process.start(self.election.lead(self.work), "candidate")

    async def work(self):
        try:
            while True:
                if self.election.leads:
                    self.acts.append(self._world.now)
                await asyncio.sleep(0.1)
        finally:
            self.ended.append(self._world.now)


class World:
    """``led``: (begin, end, who) of every stretch in which somebody might act for certain, as it was seen."""

    def __init__(self, *, lease=True):
        self.clock = virtual.VirtualClock()
        self.server = ApiServer(self.clock, Random(1))
        self.admin = Client(InProcess(self.server), manager="kubectl")
        self.struck = []
        self.weather = Weather(self.clock, "1", lambda *what: self.struck.append(what))
        self.candidates = []
        self.leaders = []
        self._lease = lease

    @property
    def now(self):
        return asyncio.get_running_loop().time()

    async def __aenter__(self):
        if self._lease:
            await self.admin.create(LEASES, {"metadata": {"name": LEASE.name}}, namespace=LEASE.namespace)
        self._watcher = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_):
        for one in self.candidates:
            one.process.kill()
        await cancel(self._watcher)

    def candidate(self, name, life=0, **rest):
        one = Candidate(self, name, life, **rest)
        self.candidates.append(one)
        return one

    async def _watch(self):
        """What is to hold at each moment. The dead count too: what they have begun may still be going on."""
        while True:
            leading = [one.election._identity for one in self.candidates if one.election.leads]
            assert len(leading) < 2, f"{self.now}: {leading} lead at once"
            if leading and (not self.leaders or self.leaders[-1][1] != leading[0]):
                self.leaders.append((self.now, leading[0]))
            await asyncio.sleep(0.05)

    async def until_led(self, seconds=LATEST):
        """The living candidate that leads; it must be there in so many seconds."""
        begun = self.now
        while True:
            if self._watcher.done():
                self._watcher.result()
            leading = [one for one in self.candidates if one.process.alive and one.election.leads]
            if leading:
                return leading[0]
            assert self.now - begun < seconds, f"{self.now}: nobody leads since {begun}"
            await asyncio.sleep(0.05)

    async def record(self):
        lease = await self.admin.get(LEASES, LEASE.name, namespace=LEASE.namespace)
        return lease["spec"]

    async def change(self, **spec):
        await self.admin.patch(LEASES, LEASE.name, {"spec": spec}, namespace=LEASE.namespace, kind=MERGE)


def lives(scene, **rest):
    """Runs ``scene(world)`` in virtual time."""

    async def run():
        async with World(**rest) as world:
            result = await scene(world)
            if world._watcher.done():
                world._watcher.result()
            return result

    return virtual.run(run())


# -- as it goes --------------------------------------------------------------------------------------------------------


def test_one_leads_and_says_so_in_the_lease():
    async def scene(world):
        first = world.candidate("a")
        await asyncio.sleep(1)
        world.candidate("b")
        await asyncio.sleep(60)
        assert first.election.leads
        assert first.acts[0] < 0.5
        assert len(first.acts) > 550
        record = await world.record()
        assert (record["holderIdentity"], record["leaseDurationSeconds"], record["leaseTransitions"]) == ("a_0", 15, 1)
        assert record["acquireTime"] < record["renewTime"]
        assert [who for _, who in world.leaders] == ["a_0"]
        assert world.candidates[1].election.holder == "a_0"

    lives(scene)


def test_a_leader_that_is_killed_is_succeeded_when_its_lease_has_run_out():
    async def scene(world):
        first = world.candidate("a")
        await asyncio.sleep(1)
        second = world.candidate("b")
        await asyncio.sleep(20)
        first.process.kill()
        killed = world.now
        assert await world.until_led() is second
        assert world.now - killed > TERMS.lease - TERMS.retry - 0.1
        assert (await world.record())["leaseTransitions"] == 2

    lives(scene)


def test_a_clean_stop_hands_over_at_once_after_the_work_has_ended():
    async def scene(world):
        first = world.candidate("a")
        await asyncio.sleep(1)
        second = world.candidate("b")
        await asyncio.sleep(20)
        first.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await first.task
        assert (await world.record())["holderIdentity"] == ""
        assert await world.until_led(TERMS.retry * (1 + JITTER) + 0.1) is second
        assert first.ended[-1] < second.acts[0]

    lives(scene)


def test_work_that_takes_its_time_to_end_keeps_the_lease_until_it_has():
    async def scene(world):
        async def slow():
            try:
                await asyncio.sleep(1000)
            finally:
                await asyncio.sleep(40)

        first = world.candidate("a")
        first.task.cancel()
        first.task = first.process.start(first.election.lead(slow), "slow")
        await asyncio.sleep(1)
        world.candidate("b")
        await asyncio.sleep(5)
        first.task.cancel()
        await asyncio.sleep(39)
        assert first.election.leads
        await asyncio.sleep(7)
        assert world.candidates[1].election.leads

    lives(scene)


def test_work_that_ends_or_fails_releases_the_lease():
    async def scene(world):
        async def done():
            await asyncio.sleep(3)

        async def failed():
            raise ValueError("no")

        one = world.candidate("a")
        one.task.cancel()
        await one.election.lead(done)
        assert (await world.record())["holderIdentity"] == ""
        with pytest.raises(ValueError, match="no"):
            await one.election.lead(failed)
        assert (await world.record())["holderIdentity"] == ""

    lives(scene)


def test_a_lost_api_server_ends_the_work_before_others_may_take_over():
    async def scene(world):
        first = world.candidate("a")
        await asyncio.sleep(1)
        world.candidate("b")
        await asyncio.sleep(20)
        cut = Condition(programs=("a",), slow=1e9)
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
        world.weather.begin(Condition(slow=4.0))
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


def test_a_lease_that_is_deleted_is_its_leaders_still():
    async def scene(world):
        world.candidate("a")
        await asyncio.sleep(1)
        world.candidate("b")
        for _ in range(10):
            await world.admin.delete(LEASES, LEASE.name, namespace=LEASE.namespace)
            await asyncio.sleep(3.1)
        assert [who for _, who in world.leaders] == ["a_0"]

    lives(scene)


def test_without_a_lease_the_first_leader_waits_as_if_there_had_been_one():
    async def scene(world):
        world.candidate("a")
        world.candidate("b")
        await asyncio.sleep(TERMS.lease - 1)
        assert (await world.record())["holderIdentity"] == "vacant"
        assert {one.election.holder for one in world.candidates} == {""}
        await world.until_led()
        assert world.now >= TERMS.lease

    lives(scene, lease=False)


def test_one_whose_lease_was_given_to_another_by_hand_stops_at_once():
    async def scene(world):
        first = world.candidate("a")
        await asyncio.sleep(5)
        await world.change(holderIdentity="somebody")
        await asyncio.sleep(TERMS.retry + 0.2)
        assert not first.election.leads
        assert first.election.holder == "somebody"
        assert len(first.ended) == 1

    lives(scene)


def test_a_live_look_renews():
    async def scene(world):
        first = world.candidate("a")
        second = world.candidate("b")
        await asyncio.sleep(5)
        assert not await second.election.confirm()
        before = first.election.leading_until
        await asyncio.sleep(0.5)
        assert await first.election.confirm()
        assert first.election.leading_until > before
        world.weather.down = True
        with pytest.raises(errors.Unavailable):
            await first.election.confirm()
        assert first.election.leads
        world.weather.down = False
        refused = Condition(slow=1e9)
        world.weather.begin(refused)
        with pytest.raises(errors.TimedOut):
            await first.election.confirm()
        world.weather.end(refused)
        await world.until_led()

        async def never(lease, record):
            raise errors.Conflict("again")

        patch, first.election._patch = first.election._patch, never
        assert not await first.election.confirm()
        assert first.election.leads
        first.election._patch = patch
        await world.change(holderIdentity="somebody")
        assert not await first.election.confirm()

    lives(scene)


# -- in all weathers ---------------------------------------------------------------------------------------------------

NAMES = ("a", "b", "c")
conditions = st.builds(
    Condition,
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


def test_the_record_is_as_client_go_writes_it():
    async def scene(world):
        world.candidate("a")
        await asyncio.sleep(3)
        record = await world.record()
        assert sorted(record) == [
            "acquireTime",
            "holderIdentity",
            "leaseDurationSeconds",
            "leaseTransitions",
            "renewTime",
        ]
        assert len(record["renewTime"]) == len("2026-11-21T12:00:00.000000Z")
        assert json.dumps(record)

    lives(scene)
