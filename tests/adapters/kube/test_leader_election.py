"""Who leads by a Lease: it is taken, renewed, released and lost."""

import asyncio
import contextlib
import json

import pytest
from support.kube.election_candidates import LEASE, TERMS, lives

from lastcall import errors
from lastcall.adapters.kube.resources import LEASES
from lastcall.model.leadership import JITTER
from lastcall_lab.simulation.network_faults import NetworkFault


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


def test_many_live_looks_at_once_are_two_renewals():
    async def scene(world):
        one = world.candidate("a").election
        await asyncio.sleep(5)
        patch, sent = one._patch_lease, []

        async def slow(lease, record):
            sent.append(world.now)
            await asyncio.sleep(0.1)
            return await patch(lease, record)

        one._patch_lease = slow

        async def asked(number):
            await asyncio.sleep(number / 1000)
            begun = world.now
            assert await one.confirm_leading()
            assert any(at >= begun for at in sent), "who asks is confirmed by what was sent since"

        await asyncio.gather(*(asked(number) for number in range(20)))
        assert len(sent) == 2
        one._until = -1.0
        assert not await one.confirm_leading()

    lives(scene)


def test_a_live_look_renews():
    async def scene(world):
        first = world.candidate("a")
        second = world.candidate("b")
        await asyncio.sleep(5)
        assert not await second.election.confirm_leading()
        before = first.election.leading_until
        await asyncio.sleep(0.5)
        assert await first.election.confirm_leading()
        assert first.election.leading_until > before
        world.weather.down = True
        with pytest.raises(errors.Unavailable):
            await first.election.confirm_leading()
        assert first.election.leads
        world.weather.down = False
        refused = NetworkFault(slow=1e9)
        world.weather.begin(refused)
        with pytest.raises(errors.TimedOut):
            await first.election.confirm_leading()
        world.weather.end(refused)
        await world.until_led()

        async def never(lease, record):
            raise errors.Conflict("again")

        patch, first.election._patch_lease = first.election._patch_lease, never
        assert not await first.election.confirm_leading()
        assert first.election.leads
        first.election._patch_lease = patch
        await world.change(holderIdentity="somebody")
        assert not await first.election.confirm_leading()

    lives(scene)


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
