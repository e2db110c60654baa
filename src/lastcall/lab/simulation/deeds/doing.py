"""What all deeds need: how long they last, and on which machines they are done."""

from collections.abc import Awaitable, Callable, Coroutine

from lastcall.aio import Group
from lastcall.lab.simulation.cluster import Cluster
from lastcall.lab.simulation.scenario import Event

Deed = Callable[[Cluster, Event], Awaitable[None]]
"""Does what an event says, and undoes it when its time is over."""

DeedOnMachine = Callable[[Cluster, Event, str], Coroutine[None, None, None]]
"""The same, to the machine with that name."""


def on_each(deed: DeedOnMachine, *, at_once: bool = True) -> Deed:
    """To all machines of the event. It strikes ``at_once``, or when the deed itself tells so."""

    async def whole(cluster: Cluster, event: Event) -> None:
        group = Group()
        for name in cluster.chosen(event.nodes):
            if at_once:
                cluster.truth.struck(event.verb.value, f"{name}, {_state(cluster, name)}")
            group.start(deed(cluster, event, name), f"{event.verb.value} {name}")
        try:
            await group.join()
        finally:
            await group.cancel()

    return whole


def _state(cluster: Cluster, name: str) -> str:
    """What a machine does, in words."""
    host = cluster.hosts[name]
    if not cluster.machines[name].powered:
        return "off"
    if host.logind.preparing:
        return "shutting down"
    return "at rest" if host.kubelet else "starting"


async def over(cluster: Cluster, event: Event, default: float | None = None) -> bool:
    """Waits as long as the event lasts; False at once if it lasts for ever."""
    lasts = default if event.lasts is None else event.lasts
    if lasts is None:
        return False
    await cluster.clock.sleep(lasts)
    return True


async def trouble(
    cluster: Cluster, event: Event, name: str, what: str, turn: Callable[[bool], None], default: float | None = None
) -> None:
    """Turns a machine's trouble on and, when the event is over, off; those that overlap are over when the last one is."""
    many = cluster.hosts[name].troubles
    many[what] += 1
    if many[what] == 1:
        cluster.truth.met(name, what)
        turn(True)
    if not await over(cluster, event, default):
        return
    many[what] -= 1
    if not many[what]:
        turn(False)
        cluster.truth.met(name, f"{what} over")
