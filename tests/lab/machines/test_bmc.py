"""The fake BMC of a machine: what it answers and does, and the faults that it can be given."""

import pytest
from support.lab.idle_machine import machine

from lastcall.errors import InvalidInput, TimedOut
from lastcall_lab import virtual
from lastcall_lab.machines.bmc import PATIENCE, Bmc, BmcFaults
from lastcall_lab.machines.power import PowerSwitch


def on_bmc(test):
    """The test in virtual time, with the BMC of a machine that is on."""

    def run():
        async def whole():
            one, clock = machine()
            await one.turn(PowerSwitch.ON)
            await test(Bmc(one, clock), one, clock)

        virtual.run(whole())

    run.__name__ = test.__name__
    return run


@on_bmc
async def test_it_tells_the_truth_and_switches(bmc, one, clock):
    assert await bmc.is_powered()
    await bmc.power(on=False)
    assert not await bmc.is_powered()
    await bmc.power(on=True)
    assert await bmc.is_powered()
    assert one.host.done == ["boot", "die", "boot"]


@on_bmc
async def test_it_lies(bmc, one, clock):
    bmc.faults = BmcFaults(says=False)
    assert not await bmc.is_powered()
    await one.turn(PowerSwitch.OFF)
    bmc.faults = BmcFaults(says=True)
    assert await bmc.is_powered()


@on_bmc
async def test_it_is_late(bmc, one, clock):
    bmc.faults = BmcFaults(late=4)
    begun = clock.boottime()
    assert await bmc.is_powered()
    assert clock.boottime() - begun == 4
    await bmc.power(on=False)
    assert clock.boottime() - begun == 8


@pytest.mark.parametrize("faults", [BmcFaults(deaf=True), BmcFaults(late=PATIENCE + 1)])
def test_it_does_not_answer(faults):
    @on_bmc
    async def check(bmc, one, clock):
        bmc.faults = faults
        begun = clock.boottime()
        with pytest.raises(TimedOut, match="the BMC of lab-1 does not answer"):
            await bmc.is_powered()
        assert clock.boottime() - begun == PATIENCE
        with pytest.raises(TimedOut):
            await bmc.power(on=False)
        assert one.is_powered

    check()


@on_bmc
async def test_it_is_stuck(bmc, one, clock):
    bmc.faults = BmcFaults(stuck=True)
    await bmc.power(on=False)
    assert await bmc.is_powered(), "it answers that it has switched; who asks again learns the truth"


@on_bmc
async def test_on_does_nothing_to_a_machine_that_is_on(bmc, one, clock):
    await one.turn(PowerSwitch.HUNG)
    await bmc.power(on=True)
    assert one.switch is PowerSwitch.HUNG
    await bmc.power(on=False)
    await bmc.power(on=True)
    assert one.host.done == ["boot", "stop kubelet", "die", "boot"]


@pytest.mark.parametrize(
    ("before", "wanted", "after", "words"),
    [
        ({}, {}, {}, []),
        ({}, {"says": "off"}, {"says": False}, ["says off"]),
        ({"says": False}, {"says": "on"}, {"says": True}, ["says on"]),
        ({"says": False}, {"says": "truth"}, {}, []),
        ({}, {"late": "1m1.5s"}, {"late": 61.5}, ["late 1m1.5s"]),
        ({"late": 3.0}, {"late": "0"}, {}, []),
        ({}, {"deaf": "true", "stuck": "true"}, {"deaf": True, "stuck": True}, ["deaf", "stuck"]),
        ({"deaf": True, "late": 2.0}, {"deaf": "false"}, {"late": 2.0}, ["late 2s"]),
    ],
)
def test_faults_are_set_one_by_one(before, wanted, after, words):
    faults = BmcFaults(**before).with_values(wanted)
    assert faults == BmcFaults(**after)
    assert faults.describe() == words


def test_what_is_no_fault_is_named_with_all_that_is_wrong():
    with pytest.raises(InvalidInput) as refused:
        BmcFaults().with_values({"says": "maybe", "late": "5", "deaf": "yes", "burns": "true"})
    assert refused.value.violations == (
        'says: "maybe": must be on, off, truth',
        'late: "5": time: missing unit in duration "5"',
        'deaf: "yes": must be true, false',
        'burns: "true": is no fault of a BMC; there are late, wired, says, deaf, stuck',
    )
    with pytest.raises(InvalidInput, match='late: "-1s": must not be negative'):
        BmcFaults().with_values({"late": "-1s"})
