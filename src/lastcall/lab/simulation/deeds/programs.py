"""What can be done to the programs on a machine: SIGKILL, and the loss of what they talk to."""

import asyncio

from lastcall.aio import first
from lastcall.lab.power import Switch
from lastcall.lab.simulation.cluster import Cluster
from lastcall.lab.simulation.deeds.doing import over, trouble
from lastcall.lab.simulation.scenario import Event

AGENT_SECONDS = 2.0
"""Until a killed agent is started again, unless the event says so."""

BUS_SECONDS = 5.0
RUNTIME_SECONDS = 10.0

_PATIENCE = 60.0
"""For how long a death between two awaits is waited for."""


async def kill_agent(cluster: Cluster, event: Event, name: str) -> None:
    """Kubelet and agent die at once, or after so many steps; and are started again."""
    host, machine = cluster.hosts[name], cluster.machines[name]
    process, dead = host.process, asyncio.Event()
    process.at_death(dead.set)
    if event.amount:
        process.fuse = int(event.amount)
        await first(dead.wait(), cluster.clock.sleep(_PATIENCE))
        process.fuse = None
    else:
        await host.stop_kubelet()
    if not dead.is_set() or machine.switch is Switch.OFF:
        return
    cluster.truth.struck(event.verb.value, f"{name}, {'shutting down' if host.logind.preparing else 'at rest'}")
    await over(cluster, event, AGENT_SECONDS)
    if machine.powered and host.process is process and not machine.hung:
        await host.start_kubelet()


async def kill_holder(cluster: Cluster, event: Event, name: str) -> None:
    """The process that keeps the lock beside the agent."""
    host = cluster.hosts[name]
    cluster.truth.met(name, "holder killed")
    host.holder.die()


async def restart_logind(cluster: Cluster, event: Event, name: str) -> None:
    """It forgets a shutdown under way."""
    logind = cluster.hosts[name].logind
    cluster.truth.met(name, "logind restarted")
    logind.restart_logind()


async def lose_bus(cluster: Cluster, event: Event, name: str) -> None:
    """D-Bus ends, and logind with it; both are started again."""
    logind = cluster.hosts[name].logind
    cluster.truth.met(name, "no bus")
    logind.stop_bus()
    await over(cluster, event, BUS_SECONDS)
    logind.start_bus()
    logind.restart_logind()
    cluster.truth.met(name, "no bus over")


async def runtime_away(cluster: Cluster, event: Event, name: str) -> None:
    """Nothing answers for the containers; what runs runs on."""
    runtime = cluster.hosts[name].runtime

    def turn(away: bool) -> None:
        runtime.away = away

    await trouble(cluster, event, name, "no runtime", turn, RUNTIME_SECONDS)
