"""Plays a scenario: the cluster comes up, what is to happen happens, and the truth is what comes out."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping

from lastcall.aio import Group
from lastcall.errors import LastcallError
from lastcall.lab import virtual
from lastcall.lab.power import Switch
from lastcall.lab.simulation.cluster import Cluster
from lastcall.lab.simulation.scenario import Event, Scenario, Verb

log = logging.getLogger(__name__)

BETWEEN_OFF_AND_ON = 20.0
"""Seconds that a reboot takes from power off to power on, unless the event says so."""

Deed = Callable[[Cluster, Event, str], Coroutine[None, None, None]]
"""What an event does to one of its machines."""


class Rehearsal:
    """One run. ``cluster`` is there to be asked while it goes on and afterwards, within the same loop."""

    def __init__(self, scenario: Scenario, seed: int | str = 1) -> None:
        self.scenario = scenario
        self.clock = virtual.VirtualClock()
        self.cluster = Cluster(scenario, self.clock, str(seed))
        self.start = 0.0
        """When time 0 of the scenario was."""
        self._deeds = Group()
        self._broken: list[Exception] = []

    async def run(self) -> None:
        """From power on to the end of the scenario."""
        await self.cluster.begin()
        self.start = self.clock.boottime()
        for event in sorted(self.scenario.timeline, key=lambda one: one.at):
            await self.clock.sleep(self.start + event.at - self.clock.boottime())
            self._deeds.start(self._do(event), event.verb.value)
        await self.clock.sleep(self.start + self.scenario.lasts - self.clock.boottime())
        await self._deeds.cancel()
        if self._broken:
            raise self._broken[0]

    async def _do(self, event: Event) -> None:
        """What the lab itself cannot do is a mistake that ends the rehearsal; an answer of the cluster is not."""
        try:
            await DEEDS[event.verb](self.cluster, event)
        except LastcallError as error:
            log.info("%s: %s", event.verb.value, error)
        except Exception as error:
            self._broken.append(error)


async def _each(cluster: Cluster, event: Event, deed: Deed) -> None:
    group = Group()
    for name in cluster.chosen(event.nodes):
        group.start(deed(cluster, event, name), f"{event.verb.value} {name}")
    try:
        await group.join()
    finally:
        await group.cancel()


async def _lasts(cluster: Cluster, event: Event, default: float | None = None) -> bool:
    """Waits as long as the event lasts; False if it does for ever."""
    lasts = default if event.lasts is None else event.lasts
    if lasts is None:
        return False
    await cluster.clock.sleep(lasts)
    return True


# -- machines ----------------------------------------------------------------------------------------------------------


async def _reboot(cluster: Cluster, event: Event, name: str) -> None:
    machine = cluster.machines[name]
    await machine.turn(Switch.BUTTON)
    if machine.switch is Switch.OFF:
        await _lasts(cluster, event, BETWEEN_OFF_AND_ON)
        await machine.turn(Switch.ON)


async def _shut_down(cluster: Cluster, event: Event, name: str) -> None:
    await cluster.machines[name].turn(Switch.BUTTON)


async def _cancel(cluster: Cluster, event: Event, name: str) -> None:
    await cluster.machines[name].turn(Switch.ON)


def _switched(to: Switch) -> Deed:
    async def deed(cluster: Cluster, event: Event, name: str) -> None:
        machine = cluster.machines[name]
        await machine.turn(to)
        if await _lasts(cluster, event):
            await machine.turn(Switch.ON)

    return deed


async def _spot(cluster: Cluster, event: Event, name: str) -> None:
    group = Group()
    group.start(cluster.machines[name].turn(Switch.BUTTON), f"button of {name}")
    await _lasts(cluster, event, 120.0)
    await group.cancel()
    await cluster.machines[name].turn(Switch.OFF)


def _on_each(deed: Deed) -> Callable[[Cluster, Event], Awaitable[None]]:
    return lambda cluster, event: _each(cluster, event, deed)


# -- the control plane -------------------------------------------------------------------------------------------------


async def _api_down(cluster: Cluster, event: Event) -> None:
    cluster.plane.stop()
    if await _lasts(cluster, event):
        cluster.plane.start()


async def _api_restart(cluster: Cluster, event: Event) -> None:
    cluster.plane.stop()
    await _lasts(cluster, event, 1.0)
    cluster.plane.start()


async def _compact(cluster: Cluster, event: Event) -> None:
    cluster.plane.compact()


async def _kill_controllers(cluster: Cluster, event: Event) -> None:
    cluster.plane.manager.kill()
    await _lasts(cluster, event, 2.0)
    cluster.plane.start_controllers()


DEEDS: Mapping[Verb, Callable[[Cluster, Event], Awaitable[None]]] = {
    Verb.REBOOT: _on_each(_reboot),
    Verb.SHUT_DOWN: _on_each(_shut_down),
    Verb.CANCEL: _on_each(_cancel),
    Verb.POWER_CUT: _on_each(_switched(Switch.OFF)),
    Verb.HANG: _on_each(_switched(Switch.HUNG)),
    Verb.PARTITION: _on_each(_switched(Switch.PARTITIONED)),
    Verb.NO_STORAGE: _on_each(_switched(Switch.NO_STORAGE)),
    Verb.SPOT: _on_each(_spot),
    Verb.API_DOWN: _api_down,
    Verb.API_RESTART: _api_restart,
    Verb.API_COMPACT: _compact,
    Verb.KILL_CONTROLLERS: _kill_controllers,
}
