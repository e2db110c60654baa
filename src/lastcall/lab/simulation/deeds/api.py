"""What can be done to the control plane, and on the way to it."""

from collections.abc import Callable

from lastcall.lab.simulation.cluster import Cluster
from lastcall.lab.simulation.deeds.doing import Deed, over
from lastcall.lab.simulation.scenario import Event, Verb
from lastcall.lab.simulation.weather import Condition

RESTART_SECONDS = 1.0
PAUSE_SECONDS = 15.0
RESTORE_SECONDS = 30.0
"""From the backup to its being restored."""

CONTROLLERS_SECONDS = 15.0
"""Until other controllers have taken over: the lease of a kube-controller-manager (``--leader-elect-lease-duration``)."""


async def down(cluster: Cluster, event: Event) -> None:
    """Nobody reaches the server."""
    cluster.plane.stop()
    if await over(cluster, event):
        cluster.plane.start()


async def restart(cluster: Cluster, event: Event) -> None:
    """It ends, and is there again."""
    cluster.plane.stop()
    await over(cluster, event, RESTART_SECONDS)
    cluster.plane.start()


async def compact(cluster: Cluster, event: Event) -> None:
    """Its history is forgotten, and who watches has to ask again: 410 Gone for all of them."""
    cluster.truth.struck(event.verb.value, "watches")
    cluster.plane.server.watcher.hang_up()
    cluster.plane.compact()


async def kill_controllers(cluster: Cluster, event: Event) -> None:
    """All of them, and others take over."""
    cluster.truth.struck(event.verb.value, "controllers")
    cluster.plane.manager.kill()
    await over(cluster, event, CONTROLLERS_SECONDS)
    cluster.plane.start_controllers()


async def pause_controllers(cluster: Cluster, event: Event) -> None:
    """All of them stand still, and go on with what they knew."""
    cluster.truth.struck(event.verb.value, "controllers")
    manager = cluster.plane.manager
    manager.pause()
    await over(cluster, event, PAUSE_SECONDS)
    manager.resume()


async def restore(cluster: Cluster, event: Event) -> None:
    """A backup now; later the API server ends, has what it had then, and all controllers of the control plane start anew."""
    store = cluster.plane.server.store
    cluster.plane.heartbeats.write_down()
    backup = store.backup()
    await over(cluster, event, RESTORE_SECONDS)
    cluster.truth.struck(event.verb.value, "everything")
    cluster.truth.restored()
    cluster.plane.stop()
    store.restore(backup)
    cluster.plane.manager.kill()
    await cluster.clock.sleep(RESTART_SECONDS)
    cluster.plane.start()
    cluster.plane.start_controllers()


async def lose(cluster: Cluster, event: Event) -> None:
    """Events that nobody misses are a server's mistake, which ends with it: all list anew then."""
    await weather(lambda part, nodes: Condition(programs=nodes, lost=part))(cluster, event)
    if event.lasts is not None:
        await restart(cluster, Event(at=event.at, verb=Verb.API_RESTART))


async def another_server(cluster: Cluster, event: Event) -> None:
    """All connections break, and lead to an API server whose cache is behind."""
    condition = Condition(programs=tuple(cluster.chosen(event.nodes)), stale=event.amount)
    cluster.weather.begin(condition)
    cluster.plane.server.watcher.hang_up()
    if await over(cluster, event):
        cluster.weather.end(condition)


def weather(condition_of: Callable[[float, tuple[str, ...]], Condition]) -> Deed:
    """Something that is wrong for the machines of the event, or for all programs."""

    async def deed(cluster: Cluster, event: Event) -> None:
        condition = condition_of(event.amount, tuple(cluster.chosen(event.nodes)))
        cluster.weather.begin(condition)
        if await over(cluster, event):
            cluster.weather.end(condition)

    return deed
