"""What can be done to machines: buttons, plugs, cables, clocks and disks."""

from lastcall.aio import Group
from lastcall.lab.power import Switch
from lastcall.lab.simulation.cluster import Cluster
from lastcall.lab.simulation.doing import DeedOnMachine, over
from lastcall.lab.simulation.scenario import Event

OFF_SECONDS = 20.0
"""From power off to power on in a reboot, unless the event says so."""

SPOT_SECONDS = 120.0
"""From a cloud's notice to its pulling the plug (what AWS gives)."""


async def reboot(cluster: Cluster, event: Event, name: str) -> None:
    """The button; and on again, unless the shutdown was called off."""
    machine = cluster.machines[name]
    await machine.turn(Switch.BUTTON)
    if machine.switch is Switch.OFF:
        await over(cluster, event, OFF_SECONDS)
        await machine.turn(Switch.ON)


async def shut_down(cluster: Cluster, event: Event, name: str) -> None:
    """The button; it stays off, or is switched on when its time is over."""
    machine = cluster.machines[name]
    await machine.turn(Switch.BUTTON)
    if machine.switch is Switch.OFF and await over(cluster, event):
        await machine.turn(Switch.ON)


async def cancel(cluster: Cluster, event: Event, name: str) -> None:
    """``shutdown -c``."""
    await cluster.machines[name].turn(Switch.ON)


def switched(to: Switch) -> DeedOnMachine:
    """A switch, which is turned on again when its time is over."""

    async def deed(cluster: Cluster, event: Event, name: str) -> None:
        machine = cluster.machines[name]
        cluster.truth.struck(event.verb.value, f"{name}: {machine.switch.value}")
        await machine.turn(to)
        if await over(cluster, event):
            await machine.turn(Switch.ON)

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
    cluster.truth.struck(event.verb.value, name)
    clock.skew += event.amount
    if await over(cluster, event):
        clock.skew -= event.amount


async def fill_disk(cluster: Cluster, event: Event, name: str) -> None:
    """Its disk takes nothing any more."""
    disk = cluster.hosts[name].disk
    cluster.truth.struck(event.verb.value, name)
    disk.full = True
    if await over(cluster, event):
        disk.full = False
