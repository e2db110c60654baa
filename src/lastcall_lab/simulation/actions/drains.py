"""Actions on ``lastcall drain``: somebody runs it, and somebody kills it."""

from lastcall.aio import OrderedTaskGroup
from lastcall.model.drain_limits import DrainLimits, TimeoutPolicy
from lastcall_lab.simulation.actions.base import kill_process, wait_for_end
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.drains.simulated_drains import DrainCommand, DrainProcess
from lastcall_lab.simulation.scenario import ScenarioEvent

RESTART_SECONDS = 5.0


async def drain_nodes(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Gives one command for all nodes of the event."""
    nodes = tuple(cluster.select_machines(event.nodes))
    cluster.truth.record_fault(event.verb.value, ", ".join(nodes))
    policy = TimeoutPolicy(event.on_timeout or TimeoutPolicy.STOP.value)
    limits = DrainLimits(timeout=event.amount, on_timeout=policy)
    await cluster.drains.begin(DrainCommand(nodes=nodes, limits=limits, surges=event.surge))


async def kill_drains(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Kills those that are under way, and gives their commands again."""
    group = OrderedTaskGroup()
    try:
        for one in cluster.drains.under_way:
            group.start(_kill_drain(cluster, event, one), f"kill {one.name}")
        await group.join()
    finally:
        await group.cancel()


async def take_right(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """From all runs, those that are under way and those that come."""
    cluster.drains.rights.take(event.right)
    if await wait_for_end(cluster, event):
        cluster.drains.rights.give_back(event.right)


async def _kill_drain(cluster: SimulatedCluster, event: ScenarioEvent, drain: DrainProcess) -> None:
    if await kill_process(cluster, event, drain.process) and not drain.is_over:
        cluster.truth.record_fault(event.verb.value, "lastcall drain")
        await wait_for_end(cluster, event, RESTART_SECONDS)
        drain.start()
