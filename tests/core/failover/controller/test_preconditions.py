"""Looks that are made where the API server is slow, and those that nothing but the last moment before a call makes."""

import asyncio

import pytest
from support.failover.small_cluster import World, attachment, pod

from lastcall.errors import RefusedForSafety, Unavailable
from lastcall.failover.decisions import steps
from lastcall.failover.decisions.case import CaseAttachment

# -- where a look takes longer than it holds ---------------------------------------------------------------------------


class Held:
    """How the node is, is answered when a test says so: the number of looks that were begun, and the way on for each."""

    def __init__(self, world):
        self.world, self.node, self.begun = world, world.cluster.read_node, []
        world.cluster.read_node = self.asked

    async def asked(self, name):
        found, answer = await self.node(name), asyncio.Event()
        self.begun.append(answer)
        await answer.wait()
        return found

    async def answer(self, *, after):
        """The look that is under way, so many seconds later; returns when nobody can go on."""
        self.world.clock.now += after
        self.begun[-1].set()
        await settled()


async def settled():
    for _ in range(99):
        await asyncio.sleep(0)


async def waiting(surety, number=3):
    tasks = [asyncio.create_task(surety.ensure()) for _ in range(number)]
    await settled()
    return tasks


async def slow():
    world = World()
    await world.subject()
    return world, world.surety(), Held(world)


async def test_a_look_that_has_failed_leaves_nothing_of_the_one_before():
    """Who comes while the next look is under way waits for it: what was sure a second ago is not any more."""
    world = World()
    await world.subject()
    surety, fine = world.surety(), world.cluster.read_node
    await surety.ensure()

    async def fails(_):
        raise Unavailable("connection reset")

    world.clock.now += 0.8
    world.cluster.read_node = fails
    with pytest.raises(Unavailable):
        await surety.ensure()
    world.cluster.read_node, world.clock.now = fine, world.clock.now + 0.05
    held, tasks = Held(world), await waiting(surety, 1)
    tasks += await waiting(surety, 1)
    assert [one.done() for one in tasks] == [False, False]
    await held.answer(after=0.1)
    await asyncio.gather(*tasks)


async def test_all_who_wait_for_a_look_have_it_however_long_it_takes():
    """Else hundreds of pods would go one after the other, as the loss of nodes makes the API server slow."""
    _, surety, held = await slow()
    tasks = await waiting(surety)
    await held.answer(after=4.5)
    assert [one.done() for one in tasks] == [True, True, True]
    assert len(held.begun) == 1
    await asyncio.gather(*tasks)


async def test_where_looks_take_long_the_next_one_is_answered_before_the_last_is_too_old():
    """Else all calls would wait for each look, once a second."""
    world, surety, held = await slow()
    first = await waiting(surety, 1)
    await held.answer(after=0.5)
    ahead = await waiting(surety, 1)
    others = await waiting(surety)
    assert [one.done() for one in ahead] == [False], "it looks again, half a second after the last look was begun"
    assert [one.done() for one in others] == [True, True, True], "what was made sure of is half a second old"
    await held.answer(after=0.5)
    assert len(held.begun) == 2
    await asyncio.gather(*first, *ahead, *others)


async def test_a_look_that_was_under_way_already_is_none_for_who_comes_then():
    """What it says may be older than what his call follows from; one more look is for all who came meanwhile."""
    world, surety, held = await slow()
    first = await waiting(surety, 1)
    world.clock.now += 0.1
    late = await waiting(surety)
    await held.answer(after=0.9)
    assert [one.done() for one in first] == [True]
    assert [one.done() for one in late] == [False, False, False]
    await held.answer(after=0.9)
    assert [one.done() for one in late] == [True, True, True]
    assert len(held.begun) == 2
    await asyncio.gather(*first, *late)


@pytest.mark.parametrize("what", ["observed", "leads", "heard"])
async def test_who_has_waited_goes_on_by_nothing_that_is_over(what):
    world, surety, held = await slow()
    tasks = await waiting(surety)

    def changed(_):
        """As soon as the first may go on, before the last does."""
        match what:
            case "observed":
                world.seen.observed += 1.0
            case "heard":
                world.seen.heard = 101.0
            case "leads":
                world.leads.leads = world.leads.sure = False

    tasks[0].add_done_callback(changed)
    await held.answer(after=0.9)
    for answer in held.begun:
        answer.set()
    with pytest.raises(RefusedForSafety):
        await tasks[-1]
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_who_stands_still_after_he_has_waited_looks_again():
    world, surety, held = await slow()
    tasks = await waiting(surety)

    def still(_):
        """As soon as the first may go on, before the last does."""
        world.clock.now += 4.5

    tasks[0].add_done_callback(still)
    await held.answer(after=0.9)
    assert not tasks[-1].done()
    assert len(held.begun) == 2
    await held.answer(after=0.9)
    assert tasks[-1].done()
    await asyncio.gather(*tasks)


# -- right before what cannot be undone --------------------------------------------------------------------------------


async def test_nothing_is_detached_from_a_machine_that_has_booted_meanwhile():
    world = World()
    world.cluster.attached = {"va1": ("u1", "71", "n")}
    world.watched = (attachment("va1", "u1", "71", "n"),)
    subject = await world.subject()
    world.cluster.boot, world.cluster.revision = "b2", 2
    step = steps.Detach(boot_id="b1", why="w", attachments=(CaseAttachment(uid="u1", name="va1", volume="v1"),))
    with pytest.raises(RefusedForSafety, match="another boot id"):
        await world.acting.carry_out(step, subject)
    assert world.cluster.calls == []


@pytest.mark.parametrize(
    ("step", "terminating", "first"),
    [(steps.ForceDelete, True, "fail_pod"), (steps.Delete, False, "add_pod_condition")],
)
async def test_a_pod_whose_status_took_long_to_be_written_is_made_sure_of_again(step, terminating, first):
    world = World()
    subject = await world.subject(pod("a", terminating=terminating))
    write = getattr(world.cluster, first)

    async def late(*said):
        answer = await write(*said)
        world.clock.now += 2.0
        world.cluster.boot, world.cluster.revision = "b2", 2
        return answer

    setattr(world.cluster, first, late)
    with pytest.raises(RefusedForSafety, match="another boot id"):
        await world.acting.carry_out(step(boot_id="b1", why="w", pods=world.left(subject)), subject)
    assert not [call for call in world.cluster.calls if call[0] == "delete"]
