"""The agent's watchdog mode: when it is armed, petted and left to fire, at the lab's API server."""

import asyncio
import logging

import pytest
from support.watchdog.watchdog_node import BOUND, NODE, SETTINGS, lives, on_watchdog

from lastcall import names
from lastcall.adapters.host.watchdog_device import CAN_KEEPALIVE, CAN_SETTIMEOUT, ONLY_ALARM
from lastcall.adapters.kube.resources import LEASES
from lastcall_lab.fakes.watchdog import USUAL

GOING_DOWN = "the node goes down"
LEASE, TIMEOUT = SETTINGS.lease_seconds, SETTINGS.timeout_seconds


@on_watchdog(rounded=lambda seconds: -(-seconds // 4) * 4)
async def test_it_is_armed_and_says_so_with_what_the_driver_reports(world):
    world.agent()
    await asyncio.sleep(100)
    promise = await world.promise()
    assert (promise.boot_id, promise.armed, promise.timeout_seconds) == ("boot-0", True, 12)
    assert (promise.lease_seconds, promise.pet_seconds, promise.drift) == (20, 4, 0.001)
    assert world.resets == []
    assert world.dog.pets >= 100 / 4
    told = world.rounds[-1]
    assert (told.armed, told.bound, told.failed, told.withheld) == (True, (20 + 3 * 12) * 1.001, 0, 0)
    assert "(20 s lease + 3 * 12 s timeout)" in told.sentence
    lease = await world.lease()
    assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == (NODE, 20)


@on_watchdog()
async def test_an_agent_that_begins_while_the_node_goes_down_arms_nothing(world):
    world.agent(held=GOING_DOWN)
    await asyncio.sleep(60)
    assert not world.dog.is_open
    assert (await world.promise()).why == GOING_DOWN


@pytest.mark.parametrize("way", ["cut", "hangs", "deaf"])
def test_without_the_api_server_the_machine_is_reset_before_it_is_taken_for_dead(way):
    async def scene(world):
        world.agent()
        await asyncio.sleep(30)
        world.restarts = False
        setattr(world.line, way, True)
        begun = world.now
        await asyncio.sleep(200)
        assert len(world.resets) == 1
        assert LEASE - 4 < world.resets[0] - begun <= LEASE + TIMEOUT + 4
        if way == "deaf":  # what it wrote was seen, and so the bound counts from later
            assert world.proofs["boot-0"] - begun > BOUND
        else:
            assert BOUND - 4.5 < world.proofs["boot-0"] - begun < BOUND + 1
        assert world.rounds[-1].withheld > 0
        assert world.rounds[-1].sentence == "the Lease could not be renewed for too long: this machine will be reset"

    lives(scene)


def test_why_the_lease_cannot_be_renewed_is_told_once(caplog):
    async def scene(world):
        world.agent()
        for way in ("cut", "hangs", "cut"):
            await asyncio.sleep(9)
            setattr(world.line, way, True)
            await asyncio.sleep(13)
            setattr(world.line, way, False)

    with caplog.at_level(logging.INFO):
        lives(scene)
    told = [one.message for one in caplog.records if "Lease: " in one.message]
    assert told == [f"the watchdog's Lease: {why}" for why in ("cut off", "no answer in time", "cut off")]


@on_watchdog()
async def test_a_short_outage_is_lived_through(world):
    world.agent()
    for _ in range(5):
        await asyncio.sleep(30)
        world.line.cut = True
        await asyncio.sleep(LEASE - 5)
        world.line.cut = False
    await asyncio.sleep(30)
    assert world.resets == []
    assert world.rounds[-1].failed > 10


@on_watchdog()
async def test_after_a_reset_it_is_armed_for_the_new_boot(world):
    world.agent()
    await asyncio.sleep(30)
    world.line.cut = True
    await asyncio.sleep(40)
    world.line.cut = False
    await asyncio.sleep(60)
    assert len(world.resets) == 1
    promise = await world.promise()
    assert (promise.boot_id, promise.armed) == ("boot-1", True)


@on_watchdog()
async def test_an_agent_that_is_killed_and_comes_back_goes_on(world):
    world.agent()
    for _ in range(5):
        await asyncio.sleep(17)
        world.process.kill()
    await asyncio.sleep(30)
    assert world.resets == []
    assert (await world.promise()).armed


@on_watchdog()
async def test_an_agent_that_is_killed_and_stays_away_costs_a_reset(world):
    world.agent()
    await asyncio.sleep(17)
    world.restarts = False
    world.process.kill()
    killed = world.now
    await asyncio.sleep(100)
    assert world.resets == [killed + TIMEOUT]
    assert world.proofs["boot-0"] > world.resets[0]


@on_watchdog()
async def test_a_life_that_cannot_reach_the_api_server_does_not_pet_what_an_earlier_one_has_promised(world):
    world.agent()
    await asyncio.sleep(17)
    world.line.cut = True
    world.process.kill()
    killed = world.now
    await asyncio.sleep(25)
    assert world.resets == [killed + TIMEOUT]


UNFIT = {
    "its timeout is too short": (
        {"rounded": lambda _: 3},
        "timeout: 3: must be more than 2 * 4 s pet * 1.001 = 8.008 s",
    ),
    "disarmed by a crash": (
        {"options": CAN_SETTIMEOUT | CAN_KEEPALIVE},
        "the device is disarmed when the agent is killed",
    ),
    "an alarm": ({"options": USUAL | ONLY_ALARM}, "the device only raises an alarm"),
    "does not tell its timeout": ({"options": USUAL & ~CAN_SETTIMEOUT, "timeout": 0}, "must be finite"),
}


@pytest.mark.parametrize(("device", "told"), UNFIT.values(), ids=UNFIT)
def test_a_device_that_does_not_fit_is_not_armed_and_the_arithmetic_is_told(device, told):
    async def scene(world):
        world.agent()
        await asyncio.sleep(60)
        promise = await world.promise()
        assert not promise.armed
        assert told in world.rounds[-1].sentence
        assert told in promise.why
        assert (world.dog.running, world.resets) == (False, [])
        assert world.line.asked.count("PATCH") < 5

    lives(scene, **device)


@on_watchdog(nowayout=True, rounded=lambda _: 7)
async def test_a_device_that_does_not_fit_and_cannot_be_stopped_is_petted_on(world):
    world.agent()
    await asyncio.sleep(60)
    assert not (await world.promise()).armed
    world.line.cut = True
    await asyncio.sleep(200)
    assert world.dog.running
    assert world.resets == []


@pytest.mark.parametrize("real", [1, 2, 3, 4])
def test_one_that_fires_before_the_usual_pace_is_petted_faster(real):
    """Nothing stops it: each boot that opened it would be reset."""

    async def scene(world):
        world.agent()
        await asyncio.sleep(100)
        assert not (await world.promise()).armed
        world.line.hangs = True
        world.hold(GOING_DOWN)
        await asyncio.sleep(100)
        assert world.dog.running
        assert world.resets == []

    lives(scene, nowayout=True, rounded=lambda _: real)


@on_watchdog()
async def test_a_device_that_another_program_holds_is_tried_again(world):
    descriptor = world.dog.open("/dev/watchdog0")
    world.dog.write(descriptor, b"V")
    world.agent()
    await asyncio.sleep(5)
    assert "another program holds it" in world.rounds[-1].sentence
    assert "another program holds it" in (await world.promise()).why
    world.dog.close(descriptor)
    await asyncio.sleep(40)
    assert (await world.promise()).armed


@on_watchdog()
async def test_a_renewal_counts_from_when_it_was_sent(world):
    """The server may have shown it to others ever since."""
    world.agent()
    await asyncio.sleep(30)
    world.line.slow = 1.9
    await asyncio.sleep(8.1)
    asked = world.now
    world.line.cut = True
    world.restarts = False
    await asyncio.sleep(100)
    assert world.resets[0] <= asked + LEASE + TIMEOUT
    assert world.keeper._standing.renewed <= asked - 1.9


@on_watchdog()
async def test_a_lease_that_somebody_has_deleted_is_made_again(world):
    world.agent()
    await asyncio.sleep(30)
    await world.admin.delete(LEASES, NODE, namespace=names.NODES_NAMESPACE)
    await asyncio.sleep(10)
    assert (await world.promise()).armed
    assert world.resets == []


@on_watchdog()
async def test_somebody_elses_change_costs_no_renewal(world):
    world.agent()
    for number in range(20):
        await asyncio.sleep(4)
        await world.change(labels={"round": str(number)})
    assert world.rounds[-1].failed == 0
    assert (await world.promise()).armed


def test_a_fault_of_ours_is_told_and_does_not_end_it(caplog):
    async def scene(world):
        world.agent()
        await asyncio.sleep(30)
        write = world.keeper._lease.write_promise

        async def broken(promise, heard):
            world.keeper._lease.write_promise = write
            raise RuntimeError("a mistake")

        world.keeper._lease.write_promise = broken
        await asyncio.sleep(30)
        assert (await world.promise()).armed
        assert world.resets == []

    with caplog.at_level(logging.ERROR):
        lives(scene)
    assert "the watchdog's round broke off" in caplog.text


@on_watchdog()
async def test_the_worst_that_can_happen_is_within_the_bound_and_needs_all_of_its_parts(world):
    """The last pet is as late as the one before it allows, and just before the device fires the agent is killed."""
    world.agent()
    await asyncio.sleep(30)
    world.restarts = False
    world.line.cut = True
    world.dog.late = TIMEOUT - SETTINGS.pet_seconds - 0.1
    renewed = world.keeper._standing.renewed
    while world.now < renewed + LEASE + TIMEOUT:
        await asyncio.sleep(0.1)
    await asyncio.sleep(world.dog._timer.when() - world.now - 0.1)
    world.process.kill()
    await asyncio.sleep(30)
    [reset] = world.resets
    assert renewed + LEASE + 2 * TIMEOUT < reset < renewed + BOUND
    assert renewed + BOUND <= world.proofs["boot-0"] < renewed + BOUND + 1
