"""Where many nodes are lost at once those that are done are not in the way of those that are not."""

import asyncio
from dataclasses import replace

from support.failover.virtual_cluster import failing_over

from lastcall.adapters.kube.resources import PODS
from lastcall.failover.controller.ranked_semaphore import RankedSemaphore
from lastcall.failover.decisions import steps

WITHOUT = ("podgc", "taint-eviction-controller")


async def settled():
    for _ in range(9):
        await asyncio.sleep(0)


async def test_who_waits_for_room_makes_it_busy_until_all_are_let_in():
    room, over, held = RankedSemaphore(1), asyncio.Event(), []

    async def hold(name, rank):
        async with room.acquire_slot(rank):
            held.append(name)
            await over.wait()

    tasks = [asyncio.create_task(hold("first", 1))]
    await settled()
    assert not room.has_waiters
    tasks += [asyncio.create_task(hold("late", 2)), asyncio.create_task(hold("early", 0))]
    await settled()
    assert room.has_waiters
    tasks[1].cancel()
    over.set()
    first, late, early = await asyncio.gather(*tasks, return_exceptions=True)
    assert held == ["first", "early"]
    assert (first, early) == (None, None)
    assert isinstance(late, asyncio.CancelledError)
    assert not room.has_waiters
    await asyncio.wait_for(hold("next", 0), 1.0)


async def test_of_those_that_wait_the_lowest_rank_is_next_and_of_the_same_rank_who_came_first():
    room, held = RankedSemaphore(1), []

    async def hold(name, rank):
        async with room.acquire_slot(rank):
            held.append(name)

    async with room.acquire_slot(0):
        tasks = [asyncio.create_task(hold(name, rank)) for name, rank in (("c", 2), ("a", 0), ("d", 2), ("b", 1))]
        await settled()
    await asyncio.gather(*tasks)
    assert held == ["a", "b", "c", "d"]


@failing_over
async def test_a_node_that_is_back_is_seen_although_others_are_read_without_a_break(world):
    """It had nothing left to fail over, so that it came after all others."""
    world.start()
    gone = world.place()
    world.nodes.pull(gone)
    await world.until(lambda: world.place() not in (None, gone))
    await world.cluster.settle(20)
    assert world.out_of_service(gone)
    room = world.candidates[0].controller._gathering._room = RankedSemaphore(1)

    async def look():
        while True:
            async with room.acquire_slot(1):
                await world.cluster.clock.sleep(0.05)

    others = [asyncio.create_task(look()) for _ in range(3)]
    try:
        await world.nodes.boot(gone)
        await world.until(lambda: not world.out_of_service(gone), 120)
    finally:
        for one in others:
            one.cancel()
        await asyncio.gather(*others, return_exceptions=True)


def listed(world):
    """The times at which pods of a node were listed."""
    cluster, found = world.candidates[0].controller._cluster, []
    pods = cluster.list_pods

    async def listing(name):
        found.append(world.cluster.clock.boottime())
        return await pods(name)

    cluster.list_pods = listing
    return found


@failing_over(without=WITHOUT)
async def test_a_node_that_is_failed_over_is_looked_at_rarely_while_calls_for_others_wait_for_room(world):
    world.start()
    found, gone = listed(world), world.place()
    world.nodes.pull(gone)
    await world.until(lambda: world.place() not in (None, gone))
    await world.cluster.settle(20)
    (worker,) = world.candidates[0].controller.reconcilers
    assert "is failed over" in worker.sentence
    assert worker._call_rank > 1, "nodes that are not failed over yet are read first"
    await quiet(world, worker, busy=True)
    before = len(found)
    await world.cluster.settle(25)
    assert len(found) <= before + 4, "only what has happened to the node is looked at"
    await quiet(world, worker, busy=False)
    before = len(found)
    await world.cluster.settle(25)
    assert len(found) >= before + 10


@failing_over(without=WITHOUT)
async def test_a_node_that_is_empty_is_not_looked_at_while_calls_for_others_wait_for_room(world):
    world.start()
    controller, gone, found = world.candidates[0].controller, world.place(), []
    await world.until(lambda: tuple(controller.observing.attachments_of(gone)))
    attachments = tuple(controller.observing.attachments_of(gone))
    world.nodes.pull(gone)
    await world.until(lambda: world.place() not in (None, gone))
    (worker,) = controller.reconcilers
    read = controller._cluster.read_node

    async def reading(name):
        found.append(name)
        return await read(name)

    controller._cluster.read_node = reading
    for busy, attached, looks in ((True, attachments, 1), (True, (), 0), (False, (), 2)):
        controller.observing.attachments_of = lambda _, attached=attached: attached
        worker._busy, worker._before = lambda busy=busy: busy, replace(worker.gathered, removed=True)
        found.clear()
        await worker._reconcile()
        assert len(found) == looks


async def quiet(world, worker, *, busy):
    """Until the look that is due by now is over."""
    worker._busy = lambda: busy
    await world.cluster.settle(5)


@failing_over(without=WITHOUT)
async def test_no_more_nodes_are_read_at_once_than_there_is_room_for(world):
    world.start()
    controller = world.candidates[0].controller
    controller._gathering._room = RankedSemaphore(1)
    cluster, now, most = controller._cluster, [], []
    pods = cluster.list_pods

    async def listing(name):
        now.append(name)
        most.append(len(now))
        await world.cluster.clock.sleep(0.01)
        answer = await pods(name)
        now.remove(name)
        return answer

    cluster.list_pods = listing
    for name in ("n1", "n2"):
        world.nodes.pull(name)
    await world.cluster.settle(30)
    assert len(most) > 2
    assert max(most) == 1


@failing_over(without=WITHOUT)
async def test_a_node_whose_failover_has_begun_is_read_before_those_that_are_only_to_begin(world):
    world.start()
    controller, ranks = world.candidates[0].controller, {}
    room = controller._gathering._room
    place = room.acquire_slot

    def placed(rank):
        (worker,) = controller.reconcilers
        ranks.setdefault(type(worker.step), set()).add(rank)
        return place(rank)

    room.acquire_slot = placed
    gone = world.place()
    world.nodes.pull(gone)
    await world.until(lambda: world.place() not in (None, gone))
    assert ranks[type(None)] == {1}, "nothing is known of it yet"
    assert ranks[steps.ForceDelete] == {0}


@failing_over(without=WITHOUT)
async def test_a_node_of_which_nothing_is_to_be_read_does_not_wait_for_those_that_are_read(world):
    world.start()
    controller, gone = world.candidates[0].controller, world.place()
    room = controller._gathering._room = RankedSemaphore(1)
    write, slots = controller._cluster.update_node, []

    async def writing(*args, **how):
        if how.get("taints") and not slots:
            slots.append(room.acquire_slot(0))
            await slots[0].__aenter__()  # from now on another node is read, for ever
        return await write(*args, **how)

    controller._cluster.update_node = writing
    world.nodes.pull(gone)
    await world.until(lambda: slots and all(one["spec"].get("nodeName") != gone for one in world.cluster.all(PODS)))
