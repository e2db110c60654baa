"""Actions on the programs of a machine: SIGKILL, and the loss of logind, the bus or the runtime."""

import asyncio

from lastcall.aio import wait_first
from lastcall_lab.machines.power import PowerSwitch
from lastcall_lab.simulation.actions.base import hold_trouble, wait_for_end
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.machine.service_manager import RESTART_SECONDS
from lastcall_lab.simulation.scenario import ScenarioEvent

AGENT_SECONDS = 2.0
"""Until a killed agent is started again, unless the event says so."""

BUS_SECONDS = 5.0
RUNTIME_SECONDS = 10.0

_PATIENCE = 60.0
"""For how long a death between two awaits is waited for."""


async def kill_agent(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """Agent and kubelet (or the agent, if the kubelet is another process) die at once or after so many steps; and start again."""
    host, machine = cluster.hosts[name], cluster.machines[name]
    process, dead = host.process, asyncio.Event()
    process.on_death(dead.set)
    if event.amount:
        process.fuse = int(event.amount)
        await wait_first(dead.wait(), cluster.clock.sleep(_PATIENCE))
        process.fuse = None
    else:
        process.kill()
    if not dead.is_set() or machine.switch is PowerSwitch.OFF:
        return
    cluster.truth.record_fault(
        event.verb.value, f"{name}, {'shutting down' if host.logind.is_preparing else 'at rest'}"
    )
    await wait_for_end(cluster, event, AGENT_SECONDS)
    if machine.is_powered and host.process is process and not machine.hung:
        await host.start_agent()


async def kill_kubelet(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """Its unit starts it again; where the agent is in the same process, that one too."""
    host = cluster.hosts[name]
    if not (cluster.machines[name].is_powered and host.kubelet):
        return
    process = host.process
    host.kill_kubelet()
    if not process.alive:
        await cluster.clock.sleep(RESTART_SECONDS)
        if cluster.machines[name].is_powered and host.process is process:
            await host.start_agent()


async def start_kubelet(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """As ``systemctl start kubelet`` by hand."""
    if cluster.machines[name].is_powered:
        cluster.hosts[name].request_kubelet_start()


async def kill_holder(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """Kills the process that holds the inhibitor lock for the agent."""
    host = cluster.hosts[name]
    cluster.truth.record_machine_event(name, "holder killed")
    host.holder.die()


async def restart_logind(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """It forgets a shutdown under way."""
    logind = cluster.hosts[name].logind
    cluster.truth.record_machine_event(name, "logind restarted")
    logind.restart_logind()


async def lose_bus(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """D-Bus ends, and logind with it; both are started again."""
    logind = cluster.hosts[name].logind
    cluster.truth.record_machine_event(name, "no bus")
    logind.stop_bus()
    await wait_for_end(cluster, event, BUS_SECONDS)
    logind.start_bus()
    logind.restart_logind()
    cluster.truth.record_machine_event(name, "no bus over")


async def stop_runtime(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """The container runtime does not answer; containers keep running."""
    runtime = cluster.hosts[name].runtime

    def turn(away: bool) -> None:
        runtime.away = away

    await hold_trouble(cluster, event, name, "no runtime", turn, RUNTIME_SECONDS)
