"""The lab's fence in virtual time: what its BMC may do wrong, and answers that are written down beforehand."""

import pytest
from support.lab.idle_machine import machine

from lastcall.errors import TimedOut, Unavailable
from lastcall.model.power import PowerState
from lastcall.ports.fences import FenceAnswer
from lastcall_lab import virtual
from lastcall_lab.fakes.fence import FakeFence
from lastcall_lab.machines import identifiers
from lastcall_lab.machines.bmc import Bmc, BmcFaults
from lastcall_lab.machines.power import PowerSwitch


def on_fence(test):
    """The test in virtual time, with a fence of a machine that is on."""

    def run():
        async def whole():
            one, clock = machine()
            await one.turn(PowerSwitch.ON)
            bmc = Bmc(one, clock)
            await test(FakeFence("bmc", bmc, clock, patience=5), bmc, one)

        virtual.run(whole())

    run.__name__ = test.__name__
    return run


@on_fence
async def test_it_switches_and_notes_what_it_was_asked(fence, bmc, one):
    await fence.switch_off(9)
    assert (await fence.read_power()).power is PowerState.OFF
    await fence.switch_on(9)
    assert one.is_powered
    assert [verb for verb, _ in fence.asked] == ["off", "status", "on"]


@on_fence
async def test_it_lies(fence, bmc, one):
    bmc.faults = BmcFaults(says=False)
    assert (await fence.read_power()).power is PowerState.OFF
    assert one.is_powered


@on_fence
async def test_it_accepts_and_does_nothing(fence, bmc, one):
    bmc.faults = BmcFaults(stuck=True)
    await fence.switch_off(9)
    assert (await fence.read_power()).power is PowerState.ON


@on_fence
async def test_it_hangs(fence, bmc, one):
    bmc.faults = BmcFaults(deaf=True)
    answer = await fence.read_power()
    assert (answer.power, answer.why) == (PowerState.UNKNOWN, "bmc did not answer in 5 s")
    for verb in (fence.switch_off, fence.switch_on):
        with pytest.raises(TimedOut, match="in 3 s"):
            await verb(3)
    with pytest.raises(TimedOut):
        await fence.read_target()
    times = [at for _, at in fence.asked]
    assert [later - before for before, later in zip(times, times[1:], strict=False)] == [5, 3, 3]
    assert one.is_powered


@on_fence
async def test_it_answers_late(fence, bmc, one):
    bmc.faults = BmcFaults(late=4)
    assert (await fence.read_power()).power is PowerState.ON
    with pytest.raises(TimedOut):
        await fence.switch_off(3)
    assert one.is_powered
    await fence.switch_off(4.5)
    assert not one.is_powered


@on_fence
async def test_which_machine_it_is(fence, bmc, one):
    assert (await fence.read_target()).system_uuid == identifiers.system_uuid("lab-1")


def test_it_answers_for_another_machine():
    async def whole():
        one, clock = machine()
        other, _ = machine()
        other.name = "lab-2"
        fence = FakeFence("bmc", Bmc(one, clock, {"lab-2": other}), clock)
        fence._bmc.faults = BmcFaults(wired="lab-2")
        assert (await fence.read_target()).system_uuid == identifiers.system_uuid("lab-2")

    virtual.run(whole())


@on_fence
async def test_what_is_written_down_comes_first(fence, bmc, one):
    fence.script.extend([FenceAnswer(power=PowerState.OFF), Unavailable("no route")])
    assert (await fence.read_power()).power is PowerState.OFF
    answer = await fence.read_power()
    assert (answer.power, answer.why) == (PowerState.UNKNOWN, "no route")
    assert (await fence.read_power()).power is PowerState.ON
