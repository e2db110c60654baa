"""The agent's watchdog mode when the agent ends and when the node goes down: the promise is taken back, or stays true."""

import asyncio
import logging

from support.watchdog.watchdog_node import SETTINGS, lives, on_watchdog

from lastcall.aio import cancel_and_wait
from lastcall.watchdog.keeper import AGAIN_SECONDS, LEAVE_SECONDS

GOING_DOWN = "the node goes down"


@on_watchdog()
async def test_a_clean_stop_takes_the_promise_back_and_then_stops_the_device(world):
    world.agent()
    await asyncio.sleep(30)
    world.restarts = False
    world.leave()
    await asyncio.sleep(1)
    assert world.task.done()
    assert not world.dog.running
    promise = await world.promise()
    assert (promise.armed, promise.why) == (False, "the agent ends")
    await asyncio.sleep(200)
    assert (world.resets, world.proofs) == ([], {})


def test_a_clean_stop_without_the_api_server_leaves_the_device_running(caplog):
    async def scene(world):
        world.agent()
        await asyncio.sleep(30)
        world.restarts = False
        world.line.cut = True
        world.leave()
        await asyncio.sleep(LEAVE_SECONDS - 1)
        assert not world.task.done()
        await asyncio.sleep(2.1)
        assert world.task.done()
        world.process.kill()
        assert world.dog.running
        await asyncio.sleep(100)
        assert len(world.resets) == 1

    with caplog.at_level(logging.WARNING):
        lives(scene)
    assert "the watchdog will reset this machine" in caplog.text


@on_watchdog()
async def test_an_agent_that_could_never_ask_ends_all_the_same(world):
    world.line.cut = True
    world.agent()
    await asyncio.sleep(30)
    world.restarts = False
    world.leave()
    await asyncio.sleep(LEAVE_SECONDS + 1.1)
    assert world.task.done()
    assert not world.dog.running


@on_watchdog()
async def test_an_agent_that_is_stopped_when_it_has_just_come_back_stops_what_the_killed_one_has_left_running(world):
    world.agent()
    await asyncio.sleep(30)
    world.process.kill()
    await asyncio.sleep(1)
    world.restarts = False
    world.leave()
    await asyncio.sleep(1)
    assert world.task.done()
    assert not world.dog.running
    assert not (await world.promise()).armed


@on_watchdog()
async def test_a_node_that_goes_down_takes_it_back_and_is_not_reset(world):
    """Longer than the lease without the API server: pods may take their time to end."""
    world.agent()
    await asyncio.sleep(30)
    world.hold(GOING_DOWN)
    await asyncio.sleep(0.5)
    assert (await world.promise()).why == GOING_DOWN
    assert not world.dog.running
    world.line.cut = True
    await asyncio.sleep(200)
    assert (world.resets, world.proofs) == ([], {})


@on_watchdog()
async def test_a_shutdown_that_is_called_off_arms_it_again(world):
    world.agent()
    await asyncio.sleep(30)
    world.hold(GOING_DOWN)
    await asyncio.sleep(30)
    world.hold("")
    await asyncio.sleep(1)
    assert (await world.promise()).armed
    assert world.dog.running


@on_watchdog()
async def test_what_cannot_be_taken_back_in_a_shutdown_stays_true(world):
    world.agent()
    await asyncio.sleep(30)
    world.restarts = False
    world.line.cut = True
    world.hold(GOING_DOWN)
    await asyncio.sleep(100)
    assert len(world.resets) == 1
    assert "boot-0" in world.proofs


@on_watchdog()
async def test_a_device_that_a_killed_life_has_left_running_is_stopped_in_a_shutdown(world):
    world.agent()
    await asyncio.sleep(30)
    world.held = GOING_DOWN
    world.process.kill()
    await asyncio.sleep(5)
    assert not world.dog.running
    assert not (await world.promise()).armed
    await asyncio.sleep(100)
    assert world.resets == []


@on_watchdog(nowayout=True)
async def test_a_device_that_cannot_be_stopped_is_petted_on_in_a_shutdown_and_armed_again_after_it(world):
    world.agent()
    await asyncio.sleep(30)
    world.hold(GOING_DOWN)
    await asyncio.sleep(1)
    world.line.cut = True
    await asyncio.sleep(100)
    assert world.resets == []
    world.line.cut = False
    world.hold("")
    await asyncio.sleep(5)
    assert (await world.promise()).armed


@on_watchdog()
async def test_a_write_that_arrives_late_does_not_undo_what_was_taken_back(world):
    """The request is on the network when its sender has given up, taken the promise back and stopped the device."""
    world.agent()
    await asyncio.sleep(30)
    world.line.late["PATCH"] = 9
    await asyncio.sleep(4.5)
    world.hold(GOING_DOWN)
    await asyncio.sleep(4)
    assert not world.dog.running
    await asyncio.sleep(60)
    assert not (await world.promise()).armed


@on_watchdog()
async def test_a_promise_that_comes_back_from_a_backup_is_taken_back_again(world):
    world.agent(held="")
    await asyncio.sleep(30)
    then = (await world.lease()).metadata.annotations
    world.hold(GOING_DOWN)
    await asyncio.sleep(30)
    await cancel_and_wait(world._looking)  # by the restored Lease it finds what is not so
    world._looking = asyncio.create_task(asyncio.sleep(10_000))
    await world.change(annotations=then)
    assert (await world.promise()).armed
    await asyncio.sleep(AGAIN_SECONDS + 2 * SETTINGS.pet_seconds)
    promise = await world.promise()
    assert (promise.armed, promise.why, world.dog.running) == (False, GOING_DOWN, False)
