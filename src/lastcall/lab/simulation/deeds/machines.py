"""What can be done to machines: buttons, plugs, cables, clocks and disks."""

from lastcall.aio import Group
from lastcall.lab.power import Machine, Switch
from lastcall.lab.simulation.cluster import Cluster
from lastcall.lab.simulation.deeds.doing import DeedOnMachine, over, trouble
from lastcall.lab.simulation.scenario import Event

OFF_SECONDS = 20.0
"""From power off to power on in a reboot, unless the event says so."""

DRIFT_SECONDS = 60.0
"""For how long a clock drifts unless the event says it."""

_DRIFT_STEPS = 20

SPOT_SECONDS = 120.0
"""From a cloud's notice to its pulling the plug (what AWS gives)."""


async def reboot(cluster: Cluster, event: Event, name: str) -> None:
    """The button; and on again, unless the shutdown was called off."""
    machine = cluster.machines[name]
    await machine.turn(Switch.BUTTON)
    if machine.switch is Switch.OFF:
        await over(cluster, event, OFF_SECONDS)
        await _switch_on(machine)


async def shut_down(cluster: Cluster, event: Event, name: str) -> None:
    """The button; it stays off, or is switched on when its time is over."""
    machine = cluster.machines[name]
    await machine.turn(Switch.BUTTON)
    if machine.switch is Switch.OFF and await over(cluster, event):
        await _switch_on(machine)


async def cancel(cluster: Cluster, event: Event, name: str) -> None:
    """``shutdown -c``."""
    await cluster.machines[name].call_off()


async def cut_power(cluster: Cluster, event: Event, name: str) -> None:
    """The plug; in again when its time is over, unless somebody was faster."""
    machine = cluster.machines[name]
    await machine.turn(Switch.OFF)
    if await over(cluster, event):
        await _switch_on(machine)


async def _switch_on(machine: Machine) -> None:
    """Nothing is called off or mended of one that is on."""
    if not machine.powered:
        await machine.turn(Switch.ON)


def struck_by(fault: Switch) -> DeedOnMachine:
    """One of a machine's faults, which is taken back when its time is over; a shutdown goes on all the same."""

    async def deed(cluster: Cluster, event: Event, name: str) -> None:
        machine = cluster.machines[name]
        await machine.turn(fault)
        if await over(cluster, event):
            await machine.mend(fault)

    return deed


async def reclaim(cluster: Cluster, event: Event, name: str) -> None:
    """A notice, as the button; then the plug, whatever still runs."""
    group = Group()
    group.start(cluster.machines[name].turn(Switch.BUTTON), f"button of {name}")
    await over(cluster, event, SPOT_SECONDS)
    await cluster.machines[name].turn(Switch.OFF)
    await group.cancel()


async def step_clock(cluster: Cluster, event: Event, name: str) -> None:
    """Its wall clock alone; back when its time is over."""
    clock = cluster.hosts[name].clock
    clock.skew += event.amount
    if await over(cluster, event):
        clock.skew -= event.amount


async def drift_clock(cluster: Cluster, event: Event, name: str) -> None:
    """Its wall clock alone, a little at a time; right again when it is over."""
    clock, lasts = cluster.hosts[name].clock, DRIFT_SECONDS if event.lasts is None else event.lasts
    for _ in range(_DRIFT_STEPS):
        await cluster.clock.sleep(lasts / _DRIFT_STEPS)
        clock.skew += event.amount / _DRIFT_STEPS
    clock.skew -= event.amount


async def slow_disk(cluster: Cluster, event: Event, name: str) -> None:
    """What is written is safe so much later."""
    disk = cluster.hosts[name].disk
    disk.delay += event.amount
    if await over(cluster, event):
        disk.delay -= event.amount


async def repeat_datagrams(cluster: Cluster, event: Event) -> None:
    """Between agents that keep watchdogs."""
    if watchdogs := cluster.watchdogs:
        watchdogs.repeated = event.amount
        if await over(cluster, event):
            watchdogs.repeated = 0.0


async def fill_disk(cluster: Cluster, event: Event, name: str) -> None:
    """Its disk takes nothing any more."""
    disk = cluster.hosts[name].disk

    def turn(full: bool) -> None:
        disk.full = full

    await trouble(cluster, event, name, "disk full", turn)
