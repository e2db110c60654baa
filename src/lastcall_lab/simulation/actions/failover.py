"""Actions on lastcall's failover controller, and on the BMCs by which it fences machines."""

from collections.abc import Callable

from lastcall_lab.simulation.actions.base import MachineAction, kill_process, wait_for_end
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.scenario import ScenarioEvent

RESTART_SECONDS = 2.0
PAUSE_SECONDS = 30.0


async def pause_leader(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Stops the leader, which continues later with a stale cache."""
    if replicas := cluster.failing_over.replicas:
        cluster.truth.record_fault(event.verb.value, "the failover controller")
        process = replicas.leader.process
        process.pause()
        await wait_for_end(cluster, event, PAUSE_SECONDS)
        process.resume()


async def step_clock(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """The wall clock of all of them; back when its time is over."""
    if replicas := cluster.failing_over.replicas:
        cluster.truth.record_fault(event.verb.value, "the failover controllers")
        for replica in replicas.all:
            replica.clock.skew += event.amount
        if await wait_for_end(cluster, event):
            for replica in replicas.all:
                replica.clock.skew -= event.amount


async def kill_leader(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Kills the leader at once or after so many steps, and restarts it."""
    if not (replicas := cluster.failing_over.replicas):
        return
    replica = replicas.leader
    if await kill_process(cluster, event, replica.process):
        cluster.truth.record_fault(event.verb.value, "the failover controller")
        await wait_for_end(cluster, event, RESTART_SECONDS)
        replica.start()


async def stop_replicas(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """All of them."""
    if replicas := cluster.failing_over.replicas:
        cluster.truth.record_fault(event.verb.value, "the failover controllers")
        for replica in replicas.all:
            replica.process.kill()
        if await wait_for_end(cluster, event):
            replicas.start()


async def cut_off_leader(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Cuts the leader off from the API server; for a while it still believes that it leads."""
    if replicas := cluster.failing_over.replicas:
        cluster.truth.record_fault(event.verb.value, "the failover controller")
        replica = replicas.leader
        replica.cable.cut = True
        if await wait_for_end(cluster, event):
            replica.cable.cut = False


def bmc_fault_action(**faults: object) -> MachineAction:
    """A fault of the BMCs of the machines."""

    async def act(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
        await _undo_at_end(cluster, event, cluster.failing_over.bmcs.inject_fault(name, **faults))

    return act


async def delay_bmc(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """Each answer takes so long."""
    await _undo_at_end(cluster, event, cluster.failing_over.bmcs.inject_fault(name, late=event.amount))


async def miswire_bmc(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """To another machine."""
    await _undo_at_end(cluster, event, cluster.failing_over.bmcs.inject_fault(name, wired=event.other))


async def _undo_at_end(cluster: SimulatedCluster, event: ScenarioEvent, mend: Callable[[], None]) -> None:
    if await wait_for_end(cluster, event):
        mend()
