"""The lab's fence in virtual time: what its BMC may do wrong, and answers that are written down beforehand."""

import pytest
from support.lab_machine import machine

from lastcall.errors import TimedOut, Unavailable
from lastcall.lab import machine_ids, virtual
from lastcall.lab.bmc import Bmc, Faults
from lastcall.lab.fake_fence import FakeFence
from lastcall.lab.power import Switch
from lastcall.model.power import Power
from lastcall.ports_fences import FenceAnswer


def on_fence(test):
    """The test in virtual time, with a fence of a machine that is on."""

    def run():
        async def whole():
            one, clock = machine()
            await one.turn(Switch.ON)
            bmc = Bmc(one, clock)
            await test(FakeFence("bmc", bmc, clock, patience=5), bmc, one)

        virtual.run(whole())

    run.__name__ = test.__name__
    return run


@on_fence
async def test_it_switches_and_notes_what_it_was_asked(fence, bmc, one):
    await fence.off(9)
    assert (await fence.status()).power is Power.OFF
    await fence.on(9)
    assert one.powered
    assert [verb for verb, _ in fence.asked] == ["off", "status", "on"]


@on_fence
async def test_it_lies(fence, bmc, one):
    bmc.faults = Faults(says=False)
    assert (await fence.status()).power is Power.OFF
    assert one.powered


@on_fence
async def test_it_accepts_and_does_nothing(fence, bmc, one):
    bmc.faults = Faults(stuck=True)
    await fence.off(9)
    assert (await fence.status()).power is Power.ON


@on_fence
async def test_it_hangs(fence, bmc, one):
    bmc.faults = Faults(deaf=True)
    answer = await fence.status()
    assert (answer.power, answer.why) == (Power.UNKNOWN, "bmc did not answer in 5 s")
    for verb in (fence.off, fence.on):
        with pytest.raises(TimedOut, match="in 3 s"):
            await verb(3)
    with pytest.raises(TimedOut):
        await fence.target()
    times = [at for _, at in fence.asked]
    assert [later - before for before, later in zip(times, times[1:], strict=False)] == [5, 3, 3]
    assert one.powered


@on_fence
async def test_it_answers_late(fence, bmc, one):
    bmc.faults = Faults(late=4)
    assert (await fence.status()).power is Power.ON
    with pytest.raises(TimedOut):
        await fence.off(3)
    assert one.powered
    await fence.off(4.5)
    assert not one.powered


@on_fence
async def test_which_machine_it_is(fence, bmc, one):
    assert (await fence.target()).system_uuid == machine_ids.system_uuid("lab-1")


def test_it_answers_for_another_machine():
    async def whole():
        one, clock = machine()
        other, _ = machine()
        other.name = "lab-2"
        fence = FakeFence("bmc", Bmc(one, clock, {"lab-2": other}), clock)
        fence._bmc.faults = Faults(wired="lab-2")
        assert (await fence.target()).system_uuid == machine_ids.system_uuid("lab-2")

    virtual.run(whole())


@on_fence
async def test_what_is_written_down_comes_first(fence, bmc, one):
    fence.script.extend([FenceAnswer(power=Power.OFF), Unavailable("no route")])
    assert (await fence.status()).power is Power.OFF
    answer = await fence.status()
    assert (answer.power, answer.why) == (Power.UNKNOWN, "no route")
    assert (await fence.status()).power is Power.ON
