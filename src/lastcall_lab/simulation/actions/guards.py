"""Actions on lastcall's guard, and on the applications of the workloads that it guards."""

from collections.abc import Callable

from lastcall_lab.fakes.guarded_application import GuardedApplication
from lastcall_lab.simulation.actions.base import kill_process, wait_for_end
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.scenario import ScenarioEvent

RESTART_SECONDS = 2.0
FLAP_SECONDS = 20.0
_TURNS = 10


async def kill_leader(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Kills the replica that leads, at once or after so many steps, and starts it again."""
    replica = cluster.guards.leader
    if replica and await kill_process(cluster, event, replica.process):
        cluster.truth.record_fault(event.verb.value, "the guard")
        await wait_for_end(cluster, event, RESTART_SECONDS)
        replica.start()


async def stop_replicas(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """All of them."""
    for replica in cluster.guards.replicas:
        cluster.truth.record_fault(event.verb.value, "the guard")
        replica.process.kill()
    if await wait_for_end(cluster, event):
        for replica in cluster.guards.replicas:
            replica.start()


async def stall_applications(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """What they prepare stands still until the time is over."""
    _change(cluster, event, _freeze)
    if await wait_for_end(cluster, event):
        _change(cluster, None, _thaw)


async def silence_applications(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """They answer nobody until the time is over."""

    def silence(application: GuardedApplication) -> None:
        application.is_silent = True

    def speak(application: GuardedApplication) -> None:
        application.is_silent = False

    _change(cluster, event, silence)
    if await wait_for_end(cluster, event):
        _change(cluster, None, speak)


async def delay_applications(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Each answer takes so much longer until the time is over."""

    def add(seconds: float) -> Callable[[GuardedApplication], None]:
        def act(application: GuardedApplication) -> None:
            application.delay = round(application.delay + seconds, 3)

        return act

    _change(cluster, event, add(event.amount))
    if await wait_for_end(cluster, event):
        _change(cluster, None, add(-event.amount))


async def flap_applications(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """What they prepare stands still and goes on, by turns."""
    pause = (FLAP_SECONDS if event.lasts is None else event.lasts) / _TURNS / 2
    for _ in range(_TURNS):
        _change(cluster, event, _freeze)
        await cluster.clock.sleep(pause)
        _change(cluster, None, _thaw)
        await cluster.clock.sleep(pause)


async def forget_preparations(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """What they have prepared does not stand any more."""
    _change(cluster, event, lambda application: application.lose_preparations())


async def have_applications_lie(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """They say that they are ready until the time is over."""

    def lie(application: GuardedApplication) -> None:
        application.is_lying = True

    def speak_truth(application: GuardedApplication) -> None:
        application.is_lying = False

    _change(cluster, event, lie)
    if await wait_for_end(cluster, event):
        _change(cluster, None, speak_truth)


def _freeze(application: GuardedApplication) -> None:
    application.is_frozen = True


def _thaw(application: GuardedApplication) -> None:
    application.is_frozen = False


def _change(cluster: SimulatedCluster, event: ScenarioEvent | None, act: Callable[[GuardedApplication], None]) -> None:
    """Does it to all applications; ``event`` is recorded, if it is one that strikes."""
    for name, application in cluster.guards.applications.items():
        if event:
            cluster.truth.record_fault(event.verb.value, name)
        act(application)
