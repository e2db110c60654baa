"""Actions on ``lastcall drain``: somebody runs it, and somebody kills it."""

import asyncio

from lastcall.aio import OrderedTaskGroup, wait_first
from lastcall.model.drain_limits import DrainLimits, TimeoutPolicy
from lastcall_lab.simulation.actions.base import wait_for_end
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.drains.simulated_drains import DrainCommand, DrainProcess
from lastcall_lab.simulation.scenario import ScenarioEvent

RESTART_SECONDS = 5.0

_PATIENCE = 60.0
"""For how long a death between two awaits is waited for."""


async def drain_nodes(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Gives one command for all nodes of the event."""
    nodes = tuple(cluster.select_machines(event.nodes))
    cluster.truth.record_fault(event.verb.value, ", ".join(nodes))
    policy = TimeoutPolicy(event.on_timeout or TimeoutPolicy.STOP.value)
    await cluster.drains.begin(DrainCommand(nodes=nodes, limits=DrainLimits(timeout=event.amount, on_timeout=policy)))


async def kill_drains(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Kills those that are under way, and gives their commands again."""
    group = OrderedTaskGroup()
    try:
        for one in cluster.drains.under_way:
            group.start(_kill_drain(cluster, event, one), f"kill {one.name}")
        await group.join()
    finally:
        await group.cancel()


async def _kill_drain(cluster: SimulatedCluster, event: ScenarioEvent, drain: DrainProcess) -> None:
    process = drain.process
    if event.amount:
        dead = asyncio.Event()
        process.on_death(dead.set)
        process.fuse = int(event.amount)
        await wait_first(dead.wait(), cluster.clock.sleep(_PATIENCE))
        process.fuse = None
    else:
        process.kill()
    if not process.alive and not drain.is_over:
        cluster.truth.record_fault(event.verb.value, "lastcall drain")
        await wait_for_end(cluster, event, RESTART_SECONDS)
        drain.start()
