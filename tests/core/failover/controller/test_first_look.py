"""What a decision was made from, if it is new, is the first look of the step; and who goes first where there is no room for all."""

import asyncio

import msgspec
import pytest
from support.failover.small_cluster import MARK, MINE, World, pod
from support.virtual_time.manual_clock import Hand

from lastcall.errors import NotFound, RefusedForSafety, Unavailable
from lastcall.failover.controller.call_limiter import CallLimiter
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.controller.ranked_semaphore import RankedSemaphore
from lastcall.failover.decisions import steps
from lastcall.failover.evidence import owner_mark
from lastcall.model.observed import ObjectChange, WatchedKind, WatchedNode


async def decided(world):
    """A Surety of a step that was decided about just now."""
    await world.subject(read=True)
    return world.surety()


async def test_what_was_read_for_the_decision_is_not_read_again_while_it_is_new():
    world = World()
    surety = await decided(world)
    world.clock.now += 0.5
    world.cluster.boot = "b2"
    await surety.ensure()
    assert world.leads.confirmed == 1
    world.clock.now += 0.3
    with pytest.raises(RefusedForSafety, match="another boot id"):
        await surety.ensure()


async def test_what_is_not_new_any_more_is_read_again():
    world = World()
    surety = await decided(world)
    world.clock.now += 0.8
    world.cluster.boot = "b2"
    with pytest.raises(RefusedForSafety, match="another boot id"):
        await surety.ensure()


async def test_what_cannot_be_called_back_by_the_next_look_is_always_read_anew():
    """An order to a fence is one call, and the Node may have changed since the decision."""
    world = World()
    subject = await world.subject(read=True)
    world.cluster.boot, world.cluster.revision = "b2", 2
    with pytest.raises(RefusedForSafety, match="another boot id"):
        await world.acting.carry_out(steps.SwitchOff(boot_id="b1", fencer="f", within=30.0, why="w"), subject)
    assert world.fences.fence.within == []


async def test_a_renewal_of_the_own_lease_that_is_new_is_not_asked_for_again():
    world = World()
    surety = await decided(world)
    world.leads.last_renewal = world.clock.now - 0.5
    await surety.ensure()
    assert world.leads.confirmed == 0
    world.clock.now += 0.3
    await surety.ensure()
    assert world.leads.confirmed == 1, "all of it holds no longer than the oldest part"


async def test_a_renewal_serves_the_looks_at_all_nodes_and_the_marks_that_follow_it():
    world = World()
    subject = await world.subject()
    await world.surety().ensure()
    world.clock.now += 0.6
    late = world.surety()
    await late.ensure()
    await world.acting.carry_out(steps.Mark(mark=MINE, why="w"), subject)
    assert world.leads.confirmed == 1
    world.clock.now += 0.2
    await late.ensure()
    assert world.leads.confirmed == 2


@pytest.mark.parametrize("renewed", [float("-inf"), 99.2])
async def test_who_has_not_renewed_lately_is_asked_whether_he_leads(renewed):
    world = World()
    surety = await decided(world)
    world.leads.last_renewal, world.leads.sure = renewed, False
    with pytest.raises(RefusedForSafety, match="does not lead"):
        await surety.ensure()


async def test_what_was_read_for_the_decision_is_held_against_the_same_rules():
    world = World()
    world.cluster.mark = owner_mark.OwnerMark(**{**MARK, "by": "you"})
    surety = await decided(world)
    with pytest.raises(RefusedForSafety, match="is not me's"):
        await surety.ensure()


async def test_a_sign_of_life_since_the_decision_counts_at_once():
    world = World()
    surety = await decided(world)
    world.seen.heard = 100.0
    with pytest.raises(RefusedForSafety, match="heard of"):
        await surety.ensure()


async def test_what_the_watch_has_overtaken_is_read_anew():
    """Somebody takes the mark away while pods are listed for the decision, and the watch says so."""
    world = World()
    surety = await decided(world)
    world.cluster.mark, world.cluster.revision = None, 2
    world.seen.observe_node(await world.cluster.read_node("n"), world.clock.now)
    with pytest.raises(RefusedForSafety, match="somebody has changed the mark"):
        await surety.ensure()


async def test_a_node_that_is_deleted_meanwhile_stops_it():
    world = World()
    surety = await decided(world)
    world.seen.note_deletion(world.clock.now)
    with pytest.raises(RefusedForSafety, match="or it was deleted"):
        await surety.ensure()


async def test_the_node_that_is_not_there_any_more_is_no_pod_that_has_gone():
    world, one = World(), pod("a")

    async def gone(name):
        raise NotFound(f"node {name} not found")

    subject = await world.subject(one)
    world.cluster.read_node = gone
    with pytest.raises(RefusedForSafety, match="node n is gone"):
        await world.acting.carry_out(steps.Delete(boot_id="b1", why="w", pods=world.left(subject)), subject)
    assert world.acted == []
    assert world.cluster.calls == []


def test_who_hears_that_a_node_is_deleted_stops_what_was_decided_about_it():
    observing = ClusterView(lambda _: None)
    node = msgspec.convert({"metadata": {"name": "n"}, "status": {"nodeInfo": {"bootID": "b1"}}}, WatchedNode)
    observing.handle_change(ObjectChange(WatchedKind.NODES, "n", node), 1.0)
    seen = observing.tracked_nodes["n"].seen
    observing.handle_change(ObjectChange(WatchedKind.NODES, "n", None), 2.0)
    assert seen.observed == 2.0


# -- who goes first ----------------------------------------------------------------------------------------------------


async def queued(pool, *ranks):
    """Calls that wait for the one room there is, in this order; they note their numbers. The room, and the notes."""
    busy, order = asyncio.Event(), []
    first = asyncio.create_task(pool.run(busy.wait))

    async def call(number):
        order.append(number)

    await asyncio.sleep(0)
    rest = [
        asyncio.create_task(pool.run(lambda number=number: call(number), rank=rank))
        for number, rank in enumerate(ranks)
    ]
    await asyncio.sleep(0)
    return busy, [first, *rest], order


async def test_the_lowest_rank_is_next_and_of_one_rank_who_came_first():
    busy, tasks, order = await queued(CallLimiter(1, Hand(0.0)), 2, 2, 0, 1, 0)
    busy.set()
    await asyncio.gather(*tasks)
    assert order == [2, 4, 3, 0, 1]


@pytest.mark.parametrize("given", [False, True])
async def test_who_is_cancelled_while_he_waits_or_as_he_is_given_room_leaves_it_to_the_others(given):
    busy, tasks, order = await queued(CallLimiter(1, Hand(0.0)), 0, 0)
    if given:
        busy.set()
        await asyncio.sleep(0)
    tasks[1].cancel()
    busy.set()
    for _ in range(9):
        await asyncio.sleep(0)
    assert order == [1]
    assert [one.done() for one in tasks] == [True, True, True]


async def test_who_waits_is_told_once_when_the_turn_is_near():
    """Half the room ahead: what the call needs first is there when its turn has come."""
    room, over, near = RankedSemaphore(4), asyncio.Event(), []

    async def hold(number):
        async with room.acquire_slot(0, lambda: near.append(number)):
            await over.wait()

    tasks = [asyncio.create_task(hold(number)) for number in range(4 + 5)]
    await asyncio.sleep(0)
    assert near == [4, 5], "the two whose turns come first"
    tasks[0].cancel()
    for _ in range(9):
        await asyncio.sleep(0)
    assert near == [4, 5, 6]
    over.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert near == [4, 5, 6, 7, 8]


async def test_the_turn_of_who_waits_no_more_is_never_near():
    """Who is told begins a look: nobody would end it."""
    room, over, near = RankedSemaphore(4), asyncio.Event(), []

    async def hold(number):
        async with room.acquire_slot(0, lambda: near.append(number)):
            await over.wait()

    tasks = [asyncio.create_task(hold(number)) for number in range(4 + 5)]
    await asyncio.sleep(0)
    for task in tasks[6:]:
        task.cancel()
    over.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert near == [4, 5]


async def test_a_node_is_looked_at_before_it_is_its_pods_turn():
    """No call keeps its place while it waits for the answer: others use it."""
    world = World(room=2)
    subject = await world.subject(pod("a"), pod("b"), read=False)
    asked = []
    look = world.cluster.read_node

    async def node(name):
        asked.append(name)
        return await look(name)

    world.cluster.read_node = node
    async with world.full(), world.full():
        forcing = asyncio.create_task(
            world.acting.carry_out(steps.ForceDelete(boot_id="b1", why="w", pods=world.left(subject)), subject)
        )
        await asyncio.sleep(0.01)
        assert asked == ["n"]
        assert world.cluster.calls == []
    await forcing
    assert asked == ["n"], "the calls need no other look"
    assert sorted(call[1] for call in world.cluster.calls) == ["a", "a", "b", "b"]


async def test_a_look_ahead_that_fails_is_told_by_the_calls_and_outlives_no_step():
    world = World(room=1)
    subject = await world.subject(pod("a"))
    hanging, begun = asyncio.Event(), []

    async def node(_):
        begun.append(asyncio.current_task())
        await hanging.wait()
        raise Unavailable("away")

    world.cluster.read_node = node
    async with world.full():
        forcing = asyncio.create_task(
            world.acting.carry_out(steps.ForceDelete(boot_id="b1", why="w", pods=world.left(subject)), subject)
        )
        await asyncio.sleep(0.01)
        assert len(begun) == 1
    await asyncio.sleep(0.01)
    hanging.set()
    with pytest.raises(Unavailable):
        await forcing
    assert world.cluster.calls == []


async def test_a_step_that_is_cancelled_ends_its_look_ahead():
    world = World(room=1)
    subject = await world.subject(pod("a"))
    ended = []

    async def node(_):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    world.cluster.read_node = node
    async with world.full():
        forcing = asyncio.create_task(
            world.acting.carry_out(steps.ForceDelete(boot_id="b1", why="w", pods=world.left(subject)), subject)
        )
        await asyncio.sleep(0.01)
        forcing.cancel()
        await asyncio.gather(forcing, return_exceptions=True)
        assert ended == [True]


async def test_a_node_that_has_begun_is_done_before_the_next_begins():
    """Both wait while the room is taken; what is to be removed by force goes before what is to be deleted first."""
    world = World(room=1)
    alive = await world.subject(pod("a", terminating=False))
    gone = await world.subject(pod("z"))
    deleting = asyncio.create_task(
        world.acting.carry_out(steps.Delete(boot_id="b1", why="w", pods=world.left(alive)), alive)
    )
    forcing = asyncio.create_task(
        world.acting.carry_out(steps.ForceDelete(boot_id="b1", why="w", pods=world.left(gone)), gone)
    )
    async with world.full():
        await asyncio.sleep(0.01)
    await asyncio.gather(deleting, forcing)
    assert [call[1] for call in world.cluster.calls] == ["z", "z", "a", "a"]
