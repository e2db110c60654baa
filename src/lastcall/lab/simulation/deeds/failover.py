"""What can be done to lastcall's failover controller, and to the BMCs by which it fences machines."""

import asyncio
from collections.abc import Callable

from lastcall.aio import first
from lastcall.lab.simulation.cluster import Cluster
from lastcall.lab.simulation.deeds.doing import DeedOnMachine, over
from lastcall.lab.simulation.scenario import Event

RESTART_SECONDS = 2.0
PAUSE_SECONDS = 30.0

_PATIENCE = 60.0
"""For how long a death between two awaits is waited for."""


async def pause(cluster: Cluster, event: Event) -> None:
    """The one that leads stands still, and goes on with what it knew."""
    if replicas := cluster.failing_over.replicas:
        cluster.truth.struck(event.verb.value, "the failover controller")
        process = replicas.leader.process
        process.pause()
        await over(cluster, event, PAUSE_SECONDS)
        process.resume()


async def step_clock(cluster: Cluster, event: Event) -> None:
    """The wall clock of all of them; back when its time is over."""
    if replicas := cluster.failing_over.replicas:
        cluster.truth.struck(event.verb.value, "the failover controllers")
        for replica in replicas.all:
            replica.clock.skew += event.amount
        if await over(cluster, event):
            for replica in replicas.all:
                replica.clock.skew -= event.amount


async def kill(cluster: Cluster, event: Event) -> None:
    """The one that leads dies at once, or after so many steps; and is started again."""
    if not (replicas := cluster.failing_over.replicas):
        return
    replica = replicas.leader
    process, dead = replica.process, asyncio.Event()
    process.at_death(dead.set)
    if event.amount:
        process.fuse = int(event.amount)
        await first(dead.wait(), cluster.clock.sleep(_PATIENCE))
        process.fuse = None
    else:
        process.kill()
    if dead.is_set():
        cluster.truth.struck(event.verb.value, "the failover controller")
        await over(cluster, event, RESTART_SECONDS)
        replica.start()


async def stop(cluster: Cluster, event: Event) -> None:
    """All of them."""
    if replicas := cluster.failing_over.replicas:
        cluster.truth.struck(event.verb.value, "the failover controllers")
        for replica in replicas.all:
            replica.process.kill()
        if await over(cluster, event):
            replicas.start()


async def cut(cluster: Cluster, event: Event) -> None:
    """The one that leads hears nothing of the API server, and believes for a while that it leads."""
    if replicas := cluster.failing_over.replicas:
        cluster.truth.struck(event.verb.value, "the failover controller")
        replica = replicas.leader
        replica.cable.cut = True
        if await over(cluster, event):
            replica.cable.cut = False


def bmc(**faults: object) -> DeedOnMachine:
    """Something is wrong with the BMCs of the machines."""

    async def deed(cluster: Cluster, event: Event, name: str) -> None:
        await _until_over(cluster, event, cluster.failing_over.bmcs.wrong(name, **faults))

    return deed


async def late(cluster: Cluster, event: Event, name: str) -> None:
    """Each answer takes so long."""
    await _until_over(cluster, event, cluster.failing_over.bmcs.wrong(name, late=event.amount))


async def wired(cluster: Cluster, event: Event, name: str) -> None:
    """To another machine."""
    await _until_over(cluster, event, cluster.failing_over.bmcs.wrong(name, wired=event.other))


async def _until_over(cluster: Cluster, event: Event, mend: Callable[[], None]) -> None:
    if await over(cluster, event):
        mend()
