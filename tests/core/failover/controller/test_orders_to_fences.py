"""When a fence may be told to switch a machine off, and until when, against a cluster in little."""

import pytest
from support.failover.small_cluster import MARK, World

from lastcall.errors import RefusedForSafety, TimedOut
from lastcall.failover.decisions import steps
from lastcall.failover.evidence import owner_mark

OFF = {"fencer": "f", "within": 30.0}


async def test_an_order_is_over_before_anybody_else_may_lead():
    world = World()
    world.leads.sole_until = 112.0
    await world.carry_out(steps.SwitchOff, **OFF)
    (within,) = world.fences.fence.within
    assert within < 12.0
    world.leads.sole_until = 101.2
    with pytest.raises(TimedOut):
        await world.carry_out(steps.SwitchOff, **OFF)
    assert len(world.fences.fence.within) == 1


async def test_the_mark_must_say_before_that_it_may_be_switched_off():
    world = World()
    world.cluster.mark = owner_mark.OwnerMark(**MARK)
    with pytest.raises(RefusedForSafety, match="does not say"):
        await world.carry_out(steps.SwitchOff, **OFF)
    assert world.fences.fence.within == []


async def test_an_order_is_told_before_and_after():
    world = World()
    await world.carry_out(steps.SwitchOff, **OFF)
    assert [(one.verb, one.ended) for one in world.acted] == [("off", None), ("off", 100.0)]
    assert len(world.devices.fencer_states()[0].offs) == 1


def held_up(world, seconds):
    """Whoever tells of an order stands still for so long."""

    def tell(told):
        world.told.append(told)
        world.clock.now += seconds

    world.acting._orders._tell = tell


async def test_a_controller_that_stands_still_while_it_tells_of_an_order_does_not_give_it():
    """As one whose log is not read for a minute: somebody else leads by then."""
    world = World()
    world.leads.sole_until = 112.0
    held_up(world, 60)
    for step in (steps.SwitchOff(boot_id="b1", why="w", **OFF), steps.SwitchOn(why="w", **OFF)):
        with pytest.raises(TimedOut, match="too short"):
            await world.acting.carry_out(step, await world.subject())
    assert world.fences.fence.within == []
    assert [bool(one.error) for one in world.acted] == [False, True, False, True]


async def test_what_was_made_sure_of_before_it_was_told_for_long_holds_no_more():
    """The lease lasts, but the machine has had time to boot, and nobody has looked since."""
    world = World()
    held_up(world, 6)
    for step in (steps.SwitchOff(boot_id="b1", why="w", **OFF), steps.SwitchOn(why="w", **OFF)):
        with pytest.raises(RefusedForSafety, match="was last looked at 6 s ago"):
            await world.acting.carry_out(step, await world.subject())
    assert world.fences.fence.within == []
    assert [bool(one.error) for one in world.acted] == [False, True, False, True]


@pytest.mark.parametrize("known", ["why", "late"])
async def test_a_fencer_that_would_strike_another_node_is_not_told(known):
    """As it is known right before, and as a live look finds."""
    world = World()
    setattr(world.rivals, known, "node n2, which is heard of, is the same machine")
    with pytest.raises(RefusedForSafety, match="node n2, which is heard of"):
        await world.carry_out(steps.SwitchOff, **OFF)
    assert world.fences.fence.within == []


async def test_another_node_that_is_heard_of_as_the_order_is_told_undoes_it():
    world = World()

    def tell(told):
        world.told.append(told)
        world.rivals.why = "node n2, which is heard of, is the same machine"

    world.acting._orders._tell = tell
    with pytest.raises(RefusedForSafety, match="node n2, which is heard of"):
        await world.carry_out(steps.SwitchOff, **OFF)
    assert world.fences.fence.within == []


async def test_another_node_that_is_heard_of_while_an_order_runs_ends_it():
    world = World()
    subject = await world.subject()
    refusal = ["", ""]
    surety = subject.safety_check(world.leads, world.clock, me="me", boot_id="b1", refusal=lambda: refusal[0])
    surety.recheck_cached()
    refusal[0] = "node n2, which is heard of, is the same machine"
    with pytest.raises(RefusedForSafety, match="node n2, which is heard of"):
        surety.recheck_cached()
