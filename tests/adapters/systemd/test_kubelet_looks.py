"""How often systemd is asked while its jobs for the kubelet take long, in virtual time."""

import contextlib
from itertools import pairwise

import pytest

from lastcall.adapters.systemd.kubelet_service import KubeletService
from lastcall.names import KUBELET_TIMER
from lastcall.ports.units import UnitState
from lastcall_lab import virtual

KUBELET = "kubelet.service"
END = 0.05
"""Seconds from the kubelet's SIGTERM to its end."""


class SlowUnits:
    """A systemd whose timer runs, and whose kubelet has its SIGTERM, so many seconds after it is asked for."""

    def __init__(self, clock, *, timer=0.0, signal=0.0):
        self.clock, self.timer, self.signal = clock, timer, signal
        self.armed = self.stopped = None
        self.looks = {KUBELET: [], KUBELET_TIMER: []}
        """When systemd was asked for the state of one unit alone."""

    @contextlib.asynccontextmanager
    async def open(self):
        yield self

    async def unit_states(self, *names):
        if len(names) == 1:
            self.looks[names[0]].append(self.clock.boottime())
        return [self._kubelet() if name == KUBELET else self._timer() for name in names]

    async def start_timer(self, name, **_):
        self.armed = self.clock.boottime()

    async def stop_unit(self, name):
        assert name == KUBELET
        self.stopped = self.clock.boottime() if self.stopped is None else self.stopped

    def _timer(self):
        is_active = self.armed is not None and self.clock.boottime() >= self.armed + self.timer
        return UnitState(load="loaded", active="active" if is_active else "inactive")

    def _kubelet(self):
        if self.stopped is None:
            return UnitState(load="loaded", active="active", sub="running")
        since = self.clock.boottime() - self.stopped - self.signal
        if since >= END:
            return UnitState(load="loaded", active="inactive", sub="dead")
        return UnitState(load="loaded", active="deactivating", sub="stop" if since < 0 else "stop-sigterm")


def stop(**how):
    """The units after a kubelet was stopped."""

    async def main():
        clock = virtual.VirtualClock()
        units = SlowUnits(clock, **how)
        service = KubeletService(KUBELET, clock, units.open)
        await service.begin_shutdown(clock.boottime() + 60)
        await service.close()
        return units

    return virtual.run(main())


def gaps(looks):
    return [round(after - before, 4) for before, after in pairwise(looks)]


@pytest.mark.parametrize(("unit", "how"), [(KUBELET, {"signal": 0.02}), (KUBELET_TIMER, {"timer": 0.02})])
def test_a_fast_job_is_looked_at_each_millisecond(unit, how):
    """All SIGTERMs wait for it."""
    assert gaps(stop(**how).looks[unit])[:20] == [0.001] * 20


@pytest.mark.parametrize(("unit", "how"), [(KUBELET, {"signal": 8.0}), (KUBELET_TIMER, {"timer": 8.0})])
def test_a_slow_job_is_looked_at_less_and_less_and_never_seldom(unit, how):
    looks = stop(**how).looks[unit]
    assert gaps(looks)[:20] == [0.001] * 20
    assert max(gaps(looks)) == 0.015
    assert len(looks) < 700, "without growth it is 8000"


def test_a_slow_sigterm_is_noted_a_twentieth_later_at_most():
    units = stop(signal=0.2)
    noted = next(at for at in units.looks[KUBELET] if at >= units.stopped + 0.2)
    assert noted <= units.stopped + 0.2 * 21 / 20
