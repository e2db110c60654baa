"""Power switches and cables of the lab's machines."""

import asyncio

import pytest
from support.lab.idle_machine import machine

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import NAMESPACES
from lastcall.errors import InvalidInput, Unavailable
from lastcall_lab import virtual
from lastcall_lab.machines.power import PowerSwitch


@pytest.mark.parametrize(
    ("turns", "done", "cut"),
    [
        ("on", ["boot"], False),
        ("on off", ["boot", "die"], True),
        ("on off on", ["boot", "die", "boot"], False),
        ("on partition", ["boot"], True),
        ("on partition on", ["boot"], False),
        ("on partition off", ["boot", "die"], True),
        ("on hang", ["boot", "stop kubelet"], False),
        ("on hang on", ["boot", "stop kubelet", "start kubelet"], False),
        ("on hang partition", ["boot", "stop kubelet", "start kubelet"], True),
        ("on hang off", ["boot", "stop kubelet", "die"], True),
        ("on button", ["boot", "press", "die"], True),
        ("on on", ["boot"], False),
        ("on storage on", ["boot", "cut storage", "mend storage"], False),
        ("on storage off", ["boot", "cut storage", "die", "mend storage"], True),
    ],
)
def test_from_position_to_position(turns, done, cut):
    async def run():
        one, _ = machine()
        for turn in turns.split():
            await one.turn(PowerSwitch(turn))
        assert one.host.done == done
        assert one.cable.cut is cut
        return one

    one = virtual.run(run())
    assert one.is_powered is (turns.split()[-1] not in ("off", "button"))


@pytest.mark.parametrize(
    ("fault", "done", "cut"),
    [
        ("on", ["die", "boot"], False),
        ("off", ["die"], True),
        ("partition", ["die", "boot"], True),
        ("hang", ["stop kubelet", "die", "boot"], False),
        ("storage", ["cut storage", "die", "mend storage", "boot", "cut storage"], False),
    ],
)
def test_a_reset_ends_a_hang_and_mends_no_cable(fault, done, cut):
    async def run():
        one, _ = machine()
        told = []
        await one.turn(PowerSwitch.ON)
        one.on_fault = told.append
        await one.turn(PowerSwitch(fault))
        await one.reset()
        assert one.host.done == ["boot", *done]
        assert one.cable.cut is cut
        assert one.switch is (PowerSwitch.ON if fault == "hang" else PowerSwitch(fault))
        return told

    told = virtual.run(run())
    assert told == {"hang": [PowerSwitch.HUNG]}.get(fault, [] if fault in ("on", "off") else [PowerSwitch(fault)] * 2)


def test_what_is_off_can_only_be_switched_on():
    async def run():
        one, _ = machine()
        with pytest.raises(InvalidInput, match="lab-1 is off: hang makes no sense"):
            await one.turn(PowerSwitch.HUNG)

    virtual.run(run())


def test_the_plug_is_pulled_while_it_goes_down():
    async def run():
        one, clock = machine()
        await one.turn(PowerSwitch.ON)
        group = asyncio.create_task(one.turn(PowerSwitch.BUTTON))
        await clock.sleep(5)
        await one.turn(PowerSwitch.OFF)
        await group
        assert one.host.done == ["boot", "press", "die"]

    virtual.run(run())


def goes_down(work):
    """``work`` with a machine that has gone down for five seconds, its clock, and what turns its switch meanwhile."""

    async def run(*before):
        one, clock = machine()
        for turn in (PowerSwitch.ON, *before):
            await one.turn(turn)
        turning = asyncio.create_task(one.turn(PowerSwitch.BUTTON))
        await clock.sleep(5)
        await work(one, clock, turning)
        return one

    return run


def test_a_shutdown_is_called_off_and_begun_again():
    @goes_down
    async def run(one, clock, turning):
        await one.turn(PowerSwitch.ON)
        await turning
        await clock.sleep(100)
        assert one.is_powered
        assert one.switch is PowerSwitch.ON
        await one.turn(PowerSwitch.BUTTON)
        assert not one.is_powered

    assert virtual.run(run()).host.done == ["boot", "press", "call off", "press", "die"]


def test_a_shutdown_is_called_off_on_the_machine():
    @goes_down
    async def run(one, clock, turning):
        await one.host.call_off_shutdown()
        await turning

    one = virtual.run(run(PowerSwitch.PARTITIONED))
    assert one.switch is PowerSwitch.PARTITIONED
    assert one.cable.cut
    assert one.host.done == ["boot", "press", "call off"]


@pytest.mark.parametrize(("fault", "mending"), [("partition", []), ("storage", ["mend storage"])])
def test_a_fault_that_is_taken_back_calls_no_shutdown_off(fault, mending):
    @goes_down
    async def run(one, clock, turning):
        await one.mend(PowerSwitch(fault))
        assert not one.cable.cut
        assert one.switch is PowerSwitch.BUTTON
        await turning
        assert not one.is_powered

    done = virtual.run(run(PowerSwitch(fault))).host.done
    assert done[done.index("press") :] == ["press", *mending, "die"]


@pytest.mark.parametrize("other", ["on", "storage", "off"])
def test_only_the_fault_that_is_there_can_be_taken_back(other):
    async def run():
        one, _ = machine()
        for turn in ("on", "partition", other):
            await one.turn(PowerSwitch(turn))
        done = list(one.host.done)
        await one.mend(PowerSwitch.PARTITIONED)
        assert one.switch is PowerSwitch(other)
        assert one.host.done == done

    virtual.run(run())


def test_a_shutdown_is_called_off_and_a_fault_stays():
    @goes_down
    async def run(one, clock, turning):
        await one.call_off_shutdown()
        await turning
        await one.call_off_shutdown()

    one = virtual.run(run(PowerSwitch.PARTITIONED))
    assert one.switch is PowerSwitch.PARTITIONED
    assert one.cable.cut
    assert one.host.done == ["boot", "press", "call off"]


def test_a_button_that_nobody_hears_can_be_pressed_again():
    async def run():
        one, _ = machine()
        await one.turn(PowerSwitch.ON)
        press = one.host.press

        async def unheard():
            raise Unavailable("there is no message bus")

        one.host.press = unheard
        with pytest.raises(Unavailable, match="no message bus"):
            await one.turn(PowerSwitch.BUTTON)
        assert one.switch is PowerSwitch.ON
        one.host.press = press
        await one.turn(PowerSwitch.BUTTON)
        assert not one.is_powered

    virtual.run(run())


def test_it_is_too_late_to_call_a_shutdown_off():
    @goes_down
    async def run(one, clock, turning):
        one.host.late = True
        with pytest.raises(InvalidInput, match="lab-1 is as good as off"):
            await one.turn(PowerSwitch.ON)
        await turning

    assert virtual.run(run()).host.done == ["boot", "press", "call off", "die"]


@pytest.mark.parametrize("button_again", [False, True])
def test_no_fault_keeps_a_machine_from_going_off(button_again):
    @goes_down
    async def run(one, clock, turning):
        await one.turn(PowerSwitch.PARTITIONED)
        assert one.cable.cut
        if button_again:
            await one.turn(PowerSwitch.BUTTON)
        await turning
        assert not one.is_powered

    assert virtual.run(run()).host.done == ["boot", "press", "die"]


def test_the_button_takes_no_fault_back():
    @goes_down
    async def run(one, clock, turning):
        assert one.cable.cut
        await turning
        await one.turn(PowerSwitch.ON)
        assert not one.cable.cut

    assert virtual.run(run(PowerSwitch.PARTITIONED)).host.done == ["boot", "press", "die", "boot"]


def test_a_machine_that_hangs_goes_down_and_comes_back_as_a_new_one():
    @goes_down
    async def run(one, clock, turning):
        await turning
        await one.turn(PowerSwitch.ON)

    assert virtual.run(run(PowerSwitch.HUNG)).host.done == ["boot", "stop kubelet", "press", "die", "boot"]


def test_a_cut_cable_answers_nobody_and_ends_streams():
    async def run():
        one, clock = machine()
        client = Client(one.cable)
        await one.turn(PowerSwitch.ON)
        watch = await client.watch(NAMESPACES, "0")
        await anext(watch)
        await one.turn(PowerSwitch.PARTITIONED)
        with pytest.raises(Unavailable, match="cut off"):
            await client.get(NAMESPACES, "default")
        with pytest.raises(Unavailable, match="cut off"):
            await anext(watch)
        await watch.aclose()
        await one.turn(PowerSwitch.ON)
        assert (await client.get(NAMESPACES, "default"))["metadata"]["name"] == "default"

    virtual.run(run())


def test_a_machine_is_on_until_its_power_is_gone_and_starts_again_only_then():
    """What still runs may still write: nobody is told that it is off, and no boot begins in the middle of its end."""

    async def run():
        one, clock = machine()
        await one.turn(PowerSwitch.ON)
        gone = asyncio.Event()

        async def die():
            await gone.wait()
            one.host.done.append("die")

        one.host.die = die
        off = asyncio.create_task(one.turn(PowerSwitch.OFF))
        await clock.sleep(1)
        assert (one.switch, one.is_powered) == (PowerSwitch.OFF, True)
        on = asyncio.create_task(one.turn(PowerSwitch.ON))
        await clock.sleep(1)
        assert one.host.done == ["boot"]
        gone.set()
        await off
        await on
        assert one.host.done == ["boot", "die", "boot"]
        assert (one.switch, one.is_powered) == (PowerSwitch.ON, True)

    virtual.run(run())
