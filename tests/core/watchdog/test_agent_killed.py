"""The agent dies between any two awaits: what the Lease promises holds, and a machine that may live on does."""

import asyncio

import pytest
from support.watchdog.watchdog_node import SETTINGS, lives

GOING_DOWN = "the node goes down"


async def story(world, *, fuse=None):
    """Armed, held back by a shutdown that is called off, armed again, and a clean stop."""
    world.agent(fuse=fuse)
    await asyncio.sleep(9)
    world.hold(GOING_DOWN)
    await asyncio.sleep(5)
    world.hold("")
    await asyncio.sleep(9)
    world.leave()


def steps():
    """So many steps has the agent in the story, until it has ended."""

    async def scene(world):
        world.restarts = False
        await story(world)
        await asyncio.sleep(5)
        assert world.task.done()
        assert not world.dog.running
        return world.process.steps

    return lives(scene)


STEPS = steps()


def killed(fuse, *, restarts=False, cut=False, late=0.0):
    """The story with an agent that dies after so many steps; then the line may be cut, and requests under way be late."""

    async def scene(world):
        world.restarts = restarts

        def died():
            world.line.cut = world.line.cut or cut
            world.dog.late = 0.0

        world.dog.late = late
        original = world._agent_died
        world._agent_died = lambda: (died(), original())
        await story(world, fuse=fuse)
        await asyncio.sleep(90)
        return world.resets, world.proofs, world.dog.running, await world.promise()

    return lives(scene)


def test_the_story_is_worth_it():
    assert STEPS > 80


@pytest.mark.parametrize("fuses", [range(begin, STEPS, 8) for begin in range(8)], ids=str)
def test_one_that_stays_away(fuses):
    """The controller proves nothing that has not happened, and whoever was promised a reset gets it."""
    for fuse in fuses:
        resets, proofs, running, promise = killed(fuse)
        assert len(resets) <= 1
        assert not running
        if promise and promise.armed:
            assert resets, fuse
            assert list(proofs) == ["boot-0"], fuse
        else:
            assert not proofs, fuse


@pytest.mark.parametrize("fuses", [range(begin, STEPS, 8) for begin in range(8)], ids=str)
def test_one_that_comes_back_keeps_its_machine(fuses):
    for fuse in fuses:
        resets, proofs, _, promise = killed(fuse, restarts=True)
        assert (resets, proofs) == ([], {}), fuse
        assert promise is not None


@pytest.mark.parametrize("fuses", [range(begin, STEPS, 16) for begin in range(0, 16, 4)], ids=str)
@pytest.mark.parametrize("late", [0.0, SETTINGS.timeout_seconds - SETTINGS.pet_seconds - 0.1])
def test_one_that_comes_back_and_is_cut_off(fuses, late):
    """Its device runs on, and may not be petted; also if each pet before was late."""
    for fuse in fuses:
        resets, proofs, _, promise = killed(fuse, restarts=True, cut=True, late=late)
        if promise and promise.armed:
            assert len(resets) == 1, fuse
            assert list(proofs) == ["boot-0"], fuse
        else:
            assert not proofs, fuse
