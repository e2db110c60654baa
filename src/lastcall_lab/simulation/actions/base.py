"""Helpers that all actions share: how long they last, and which machines they affect."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine

from lastcall.aio import OrderedTaskGroup, wait_first
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.scenario import ScenarioEvent
from lastcall_lab.virtual import VirtualProcess

PATIENCE = 60.0
"""For how long a death between two awaits is waited for."""

ScenarioAction = Callable[[SimulatedCluster, ScenarioEvent], Awaitable[None]]
"""Does what an event says, and undoes it when its time is over."""

MachineAction = Callable[[SimulatedCluster, ScenarioEvent, str], Coroutine[None, None, None]]
"""The same, to the machine with that name."""


def for_each_machine(act: MachineAction, *, at_once: bool = True) -> ScenarioAction:
    """To all machines of the event. It strikes ``at_once``, or when the action itself says so."""

    async def whole(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
        group = OrderedTaskGroup()
        for name in cluster.select_machines(event.nodes):
            if at_once:
                cluster.truth.record_fault(event.verb.value, f"{name}, {_machine_state(cluster, name)}")
            group.start(act(cluster, event, name), f"{event.verb.value} {name}")
        try:
            await group.join()
        finally:
            await group.cancel()

    return whole


def _machine_state(cluster: SimulatedCluster, name: str) -> str:
    """What a machine does, in words."""
    host = cluster.hosts[name]
    if not cluster.machines[name].is_powered:
        return "off"
    if host.logind.is_preparing:
        return "shutting down"
    return "at rest" if host.kubelet else "starting"


async def wait_for_end(cluster: SimulatedCluster, event: ScenarioEvent, default: float | None = None) -> bool:
    """Waits as long as the event lasts; False at once if it lasts for ever."""
    lasts = default if event.lasts is None else event.lasts
    if lasts is None:
        return False
    await cluster.clock.sleep(lasts)
    return True


async def kill_process(cluster: SimulatedCluster, event: ScenarioEvent, process: VirtualProcess) -> bool:
    """Kills it at once, or after so many more of its steps as the event says; whether it is dead."""
    if not event.amount:
        process.kill()
        return True
    dead = asyncio.Event()
    process.on_death(dead.set)
    process.fuse = int(event.amount)
    await wait_first(dead.wait(), cluster.clock.sleep(PATIENCE))
    process.fuse = None
    return dead.is_set()


async def hold_trouble(
    cluster: SimulatedCluster,
    event: ScenarioEvent,
    name: str,
    what: str,
    turn: Callable[[bool], None],
    default: float | None = None,
) -> None:
    """Turns a fault of a machine on, and off when the event is over; overlapping faults end with the last one."""
    many = cluster.hosts[name].troubles
    many[what] += 1
    if many[what] == 1:
        cluster.truth.record_machine_event(name, what)
        turn(True)
    if not await wait_for_end(cluster, event, default):
        return
    many[what] -= 1
    if not many[what]:
        turn(False)
        cluster.truth.record_machine_event(name, f"{what} over")
