"""Actions on machines: buttons, plugs, cables, clocks and disks."""

from lastcall.aio import OrderedTaskGroup
from lastcall_lab.machines.power import LabMachine, PowerSwitch
from lastcall_lab.simulation.actions.base import MachineAction, hold_trouble, wait_for_end
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.scenario import ScenarioEvent

OFF_SECONDS = 20.0
"""From power off to power on in a reboot, unless the event says so."""

DRIFT_SECONDS = 60.0
"""For how long a clock drifts unless the event says it."""

_DRIFT_STEPS = 20

SPOT_SECONDS = 120.0
"""From a cloud's notice to its pulling the plug (what AWS gives)."""


async def reboot(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """The button; and on again, unless the shutdown was called off."""
    machine = cluster.machines[name]
    await machine.turn(PowerSwitch.BUTTON)
    if machine.switch is PowerSwitch.OFF:
        await wait_for_end(cluster, event, OFF_SECONDS)
        await _switch_on(machine)


async def shut_down(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """The button; it stays off, or is switched on when its time is over."""
    machine = cluster.machines[name]
    await machine.turn(PowerSwitch.BUTTON)
    if machine.switch is PowerSwitch.OFF and await wait_for_end(cluster, event):
        await _switch_on(machine)


async def cancel_shutdown(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """``shutdown -c``."""
    await cluster.machines[name].call_off_shutdown()


async def cut_power(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """The plug; in again when its time is over, unless somebody was faster."""
    machine = cluster.machines[name]
    await machine.turn(PowerSwitch.OFF)
    if await wait_for_end(cluster, event):
        await _switch_on(machine)


async def _switch_on(machine: LabMachine) -> None:
    """Nothing is called off or mended of one that is on."""
    if not machine.is_powered:
        await machine.turn(PowerSwitch.ON)


def machine_fault_action(fault: PowerSwitch) -> MachineAction:
    """One of a machine's faults, which is taken back when its time is over; a shutdown goes on all the same."""

    async def act(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
        machine = cluster.machines[name]
        await machine.turn(fault)
        if await wait_for_end(cluster, event):
            await machine.mend(fault)

    return act


async def reclaim_instance(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """A notice, as the button; then the plug, whatever still runs."""
    group = OrderedTaskGroup()
    group.start(cluster.machines[name].turn(PowerSwitch.BUTTON), f"button of {name}")
    await wait_for_end(cluster, event, SPOT_SECONDS)
    await cluster.machines[name].turn(PowerSwitch.OFF)
    await group.cancel()


async def step_clock(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """Its wall clock alone; back when its time is over."""
    clock = cluster.hosts[name].clock
    clock.skew += event.amount
    if await wait_for_end(cluster, event):
        clock.skew -= event.amount


async def drift_clock(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """Its wall clock alone, a little at a time; right again when it is over."""
    clock, lasts = cluster.hosts[name].clock, DRIFT_SECONDS if event.lasts is None else event.lasts
    for _ in range(_DRIFT_STEPS):
        await cluster.clock.sleep(lasts / _DRIFT_STEPS)
        clock.skew += event.amount / _DRIFT_STEPS
    clock.skew -= event.amount


async def slow_disk(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """Writes become durable so much later."""
    disk = cluster.hosts[name].disk
    disk.delay += event.amount
    if await wait_for_end(cluster, event):
        disk.delay -= event.amount


async def repeat_datagrams(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Between agents that keep watchdogs."""
    if watchdogs := cluster.watchdogs:
        watchdogs.repeated = event.amount
        if await wait_for_end(cluster, event):
            watchdogs.repeated = 0.0


async def fill_disk(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """The disk is full."""
    disk = cluster.hosts[name].disk

    def turn(full: bool) -> None:
        disk.full = full

    await hold_trouble(cluster, event, name, "disk full", turn)
