"""Actions on the control plane and on the network to it."""

from collections.abc import Callable

from lastcall_lab.simulation.actions.base import ScenarioAction, wait_for_end
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.network_faults import NetworkFault
from lastcall_lab.simulation.scenario import ScenarioEvent, Verb

RESTART_SECONDS = 1.0
PAUSE_SECONDS = 15.0
RESTORE_SECONDS = 30.0
"""From the backup to its being restored."""

CONTROLLERS_SECONDS = 15.0
"""Until other controllers have taken over: the lease of a kube-controller-manager (``--leader-elect-lease-duration``)."""


async def stop_server(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """The API server is unreachable."""
    cluster.plane.stop()
    if await wait_for_end(cluster, event):
        cluster.plane.start()


async def restart_server(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """The API server restarts."""
    cluster.plane.stop()
    await wait_for_end(cluster, event, RESTART_SECONDS)
    cluster.plane.start()


async def compact_history(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Compacts the history: every watch gets 410 Gone and has to list again."""
    cluster.truth.record_fault(event.verb.value, "watches")
    cluster.plane.server.registry.watcher.hang_up()
    cluster.plane.compact_history()


async def kill_controllers(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Kills all controllers; others take over."""
    cluster.truth.record_fault(event.verb.value, "controllers")
    cluster.plane.manager.kill()
    await wait_for_end(cluster, event, CONTROLLERS_SECONDS)
    cluster.plane.start_controllers()


async def pause_controllers(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """All controllers are stopped, and continue later with stale caches."""
    cluster.truth.record_fault(event.verb.value, "controllers")
    manager = cluster.plane.manager
    manager.pause()
    await wait_for_end(cluster, event, PAUSE_SECONDS)
    manager.resume()


async def restore_etcd(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """A backup now; later the API server ends, has what it had then, and all controllers of the control plane start anew."""
    store = cluster.plane.server.store
    cluster.plane.heartbeats.write_to_store()
    backup = store.backup()
    await wait_for_end(cluster, event, RESTORE_SECONDS)
    cluster.truth.record_fault(event.verb.value, "everything")
    cluster.truth.record_restore()
    cluster.plane.stop()
    store.restore(backup)
    cluster.plane.manager.kill()
    await cluster.clock.sleep(RESTART_SECONDS)
    cluster.plane.start()
    cluster.plane.start_controllers()


async def lose_watch_events(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Events that nobody misses are a server's mistake, which ends with it: all list anew then."""
    await network_fault_action(lambda part, nodes: NetworkFault(programs=nodes, lost=part))(cluster, event)
    if event.lasts is not None:
        await restart_server(cluster, ScenarioEvent(at=event.at, verb=Verb.API_RESTART))


async def switch_to_stale_server(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """All connections break; new ones reach an API server with a stale cache."""
    condition = NetworkFault(programs=tuple(cluster.select_machines(event.nodes)), stale=event.amount)
    cluster.weather.begin(condition)
    cluster.plane.server.registry.watcher.hang_up()
    if await wait_for_end(cluster, event):
        cluster.weather.end(condition)


def network_fault_action(condition_of: Callable[[float, tuple[str, ...]], NetworkFault]) -> ScenarioAction:
    """A network fault for the machines of the event, or for all programs."""

    async def act(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
        condition = condition_of(event.amount, tuple(cluster.select_machines(event.nodes)))
        cluster.weather.begin(condition)
        if await wait_for_end(cluster, event):
            cluster.weather.end(condition)

    return act
