"""What every watchdog device promises: by the adapter for Linux, on a kernel that is played.

No real device is opened: to open one is to arm it. That the played kernel does as Linux does is taken from its source.
"""

import asyncio
import math

import pytest

from lastcall.adapters.host.watchdog_device import (
    CAN_KEEPALIVE,
    CAN_MAGICCLOSE,
    CAN_SETTIMEOUT,
    ONLY_ALARM,
    WatchdogDeviceFile,
)
from lastcall.errors import Unavailable
from lastcall_lab import virtual
from lastcall_lab.fakes.watchdog import USUAL, FakeWatchdog

KINDS = {
    "usual": {},
    "no keepalive": {"options": CAN_SETTIMEOUT | CAN_MAGICCLOSE},
    "a fixed timeout": {"options": CAN_KEEPALIVE | CAN_MAGICCLOSE, "timeout": 10},
    "nowayout": {"nowayout": True},
    "nowayout alone": {"nowayout": True, "options": CAN_SETTIMEOUT | CAN_KEEPALIVE},
    "disarmed by closing": {"options": CAN_SETTIMEOUT | CAN_KEEPALIVE},
}


def scene(play, **kind):
    """Runs ``play(device, kernel, resets)`` in virtual time; ``resets`` are the moments of resets."""

    async def run():
        resets = []
        kernel = FakeWatchdog(lambda: resets.append(asyncio.get_running_loop().time()), **kind)
        await play(WatchdogDeviceFile("/dev/watchdog0", kernel), kernel, resets)

    virtual.run(run())


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def kind(request):
    return request.param


def test_armed_it_runs_with_the_timeout_that_it_tells_and_fires(kind):
    async def play(device, kernel, resets):
        assert not device.is_open
        assert not kernel.running
        info = device.arm(10)
        assert device.is_open
        assert (info.timeout, info.resets) == (10, True)
        await asyncio.sleep(9.9)
        assert resets == []
        await asyncio.sleep(1)
        assert resets == [10]

    scene(play, **kind)


def test_petted_it_does_not_fire(kind):
    async def play(device, kernel, resets):
        device.arm(10)
        for _ in range(10):
            await asyncio.sleep(6)
            device.pet()
        assert resets == []
        await asyncio.sleep(11)
        assert resets == [70]

    scene(play, **kind)


def test_disarmed_it_does_not_fire_and_where_it_cannot_be_it_is_held_and_petted_on(kind):
    async def play(device, kernel, resets):
        device.arm(10)
        assert device.disarm() is not kind.get("nowayout", False)
        assert device.is_open is kind.get("nowayout", False)
        if device.is_open:
            device.pet()
        await asyncio.sleep(100)
        assert resets == ([10] if device.is_open else [])

    scene(play, **kind)


def test_whether_it_survives_the_death_of_its_program_is_told(kind):
    """And the kernel pets it once more."""

    async def play(device, kernel, resets):
        info = device.arm(10)
        await asyncio.sleep(3)
        device.pet()
        await asyncio.sleep(6)
        kernel.kill_holder()
        await asyncio.sleep(100)
        assert resets == ([19] if info.survives_close else [])

    scene(play, **kind)


def test_it_can_be_armed_again(kind):
    async def play(device, kernel, resets):
        device.arm(10)
        if device.disarm():
            device.disarm()
            device.arm(10)
        await asyncio.sleep(11)
        assert resets == [10]

    scene(play, **kind)


def test_another_programs_device_is_unavailable(kind):
    async def play(device, kernel, resets):
        kernel.open("/dev/watchdog0")
        with pytest.raises(Unavailable, match="another program holds it"):
            device.arm(10)
        assert not device.is_open

    scene(play, **kind)


def test_one_that_is_not_there():
    async def play(device, kernel, resets):
        other = WatchdogDeviceFile("/dev/watchdog7", kernel)
        with pytest.raises(Unavailable, match="/dev/watchdog7: No such file or directory"):
            other.arm(10)
        assert not other.is_open
        assert other.disarm()

    scene(play)


@pytest.mark.parametrize(
    ("rounded", "real"),
    [(lambda seconds: -(-seconds // 60) * 60, 60), (lambda seconds: min(seconds, 5), 5), (lambda _: 0, 45)],
    ids=["rounds up to minutes", "has a maximum", "refuses"],
)
def test_the_timeout_that_is_told_is_the_drivers(rounded, real):
    async def play(device, kernel, resets):
        assert device.arm(10).timeout == real
        await asyncio.sleep(real + 1)
        assert resets == [real]

    scene(play, rounded=rounded, timeout=45)


def test_a_driver_that_does_not_tell_its_timeout():
    async def play(device, kernel, resets):
        assert device.arm(10).timeout == math.inf

    scene(play, timeout=0, options=CAN_KEEPALIVE | CAN_MAGICCLOSE)


def test_a_driver_that_only_raises_an_alarm():
    async def play(device, kernel, resets):
        assert not device.arm(10).resets

    scene(play, options=USUAL | ONLY_ALARM)


def test_a_device_that_fails_says_so():
    async def play(device, kernel, resets):
        device.arm(10)
        kernel.kill_holder()
        with pytest.raises(Unavailable, match="Bad file descriptor"):
            device.pet()

    scene(play)


def test_the_name_without_a_number_is_that_of_the_first_device():
    async def play(device, kernel, resets):
        assert WatchdogDeviceFile("/dev/watchdog", kernel).arm(10).survives_close

    scene(play, path="/dev/watchdog", nowayout=True, options=CAN_SETTIMEOUT)
