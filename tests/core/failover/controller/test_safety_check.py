"""What is made sure of before what cannot be undone, and for how long that holds."""

import asyncio

import msgspec
import pytest
from support.failover.small_cluster import MARK, World

from lastcall.errors import RefusedForSafety
from lastcall.failover.decisions import steps
from lastcall.failover.evidence import owner_mark
from lastcall.model.observed import WatchedLease

OFF = {"fencer": "f", "within": 30.0}


@pytest.mark.parametrize(
    ("what", "value", "why"),
    [
        ("boot", "b2", "another boot id"),
        ("beat", "2", "heard of"),
        ("renewed", "r2", "heard of"),
        ("mark", owner_mark.OwnerMark(**{**MARK, "by": "you"}), "is not me's"),
        ("mark", None, "changed the mark or the taint"),
        ("mark", owner_mark.OwnerMark(**MARK), "changed the mark or the taint"),
        (
            "taints",
            [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}],
            "changed the mark or the taint",
        ),
    ],
)
async def test_what_has_changed_meanwhile_stops_it(what, value, why):
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.verify_live()
    setattr(world.cluster, what, value)
    world.cluster.revision = 2
    with pytest.raises(RefusedForSafety, match=why):
        await surety.verify_live()


async def test_what_is_older_than_what_was_said_before_stops_it():
    """An etcd that was restored from a backup shows the boot, the mark and the Lease as they were."""
    world = World()
    world.cluster.revision = 9
    await world.subject()
    surety = world.surety()
    await surety.verify_live()
    world.cluster.revision = 3
    for _ in range(2):
        with pytest.raises(RefusedForSafety, match="older than what it said before"):
            await surety.verify_live()


async def test_each_look_reads_the_lease_too_for_the_watch_may_be_silent():
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.ensure()
    world.cluster.renewed = "r2"
    await surety.ensure()
    world.clock.now += 1.0
    with pytest.raises(RefusedForSafety, match="heard of"):
        await surety.ensure()


async def test_who_does_not_lead_any_more_does_nothing():
    world = World()
    world.leads.sure = False
    with pytest.raises(RefusedForSafety, match="does not lead"):
        await world.carry_out(steps.SwitchOff, **OFF)
    assert world.fences.fence.within == []


async def test_while_one_looks_again_the_others_go_on_for_the_rest_of_the_second():
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.ensure()
    world.clock.now += 0.8
    answered = world.leads.answers = asyncio.Event()
    one = asyncio.create_task(surety.ensure())
    while world.leads.confirmed == 1:
        await asyncio.sleep(0)
    await surety.ensure()
    assert world.leads.confirmed == 2
    assert not one.done()
    world.clock.now += 0.6
    late = asyncio.create_task(surety.ensure())
    await asyncio.sleep(0)
    assert not late.done()
    answered.set()
    await asyncio.gather(one, late)


async def test_what_has_turned_out_not_to_be_so_holds_for_nobody():
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.ensure()
    world.clock.now += 0.8
    world.leads.sure = False
    for _ in range(2):
        with pytest.raises(RefusedForSafety, match="does not lead"):
            await surety.ensure()


async def test_it_holds_for_most_of_a_second_and_not_beyond_leadership_or_a_sign_of_life():
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.ensure()
    world.clock.now += 0.4
    await surety.ensure()
    assert world.leads.confirmed == 1
    world.clock.now += 0.4
    await surety.ensure()
    assert world.leads.confirmed == 2
    world.leads.leads = world.leads.sure = False
    with pytest.raises(RefusedForSafety, match="does not lead"):
        await surety.ensure()
    assert world.leads.confirmed == 3
    world.leads.leads = world.leads.sure = True
    await surety.ensure()
    world.seen.observe_lease(
        msgspec.convert({"metadata": {"name": "n"}, "spec": {"renewTime": "r7"}}, WatchedLease), 1.0
    )
    world.seen.heard = 101.0
    with pytest.raises(RefusedForSafety):
        await surety.ensure()


async def test_a_look_that_is_answered_too_late_is_none():
    """The node may have come back while the answer was on its way."""
    world = World()
    subject = await world.subject()
    node = world.cluster.read_node

    async def late(name):
        found = await node(name)
        world.clock.now += 6.0
        return found

    world.cluster.read_node = late
    with pytest.raises(RefusedForSafety, match="was answered after 6 s only"):
        await world.acting.carry_out(steps.SwitchOff(boot_id="b1", fencer="f", within=30.0, why="w"), subject)
    assert world.fences.fence.within == []
