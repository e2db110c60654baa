"""Watchdogs of the simulated machines, kept by lastcall's own keepers, and the network by which their agents ask each other.

That network is not the way to the control plane: agents that are cut off from that one still hear each other.
"""

import base64
from collections.abc import Callable, Coroutine
from typing import Any

from lastcall import names
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.members import KubeMembers
from lastcall.adapters.kube.resources import Object
from lastcall.adapters.kube.transport import Transport
from lastcall.adapters.kube.watchdog_lease import KubeWatchdogLease
from lastcall.adapters.watchdog_device import WatchdogFile
from lastcall.graceful.agent import Status
from lastcall.graceful.machine import State
from lastcall.lab.fake_datagrams import FakeNetwork
from lastcall.lab.fake_watchdog import FakeWatchdog
from lastcall.lab.kubelet.settings import Profile
from lastcall.lab.making import make
from lastcall.lab.power import Machine
from lastcall.lab.simulation.scenario import Manager, Scenario
from lastcall.lab.simulation.seeds import random_of
from lastcall.lab.simulation.truth import Truth
from lastcall.lab.virtual import Process
from lastcall.manifests.agent import NAME, objects
from lastcall.model.watchdog import WatchdogSettings
from lastcall.names import SYSTEM_NAMESPACE
from lastcall.ports import Clock
from lastcall.watchdog.keeper import Keeper
from lastcall.watchdog.peers import Peers
from lastcall.watchdog.telling import Told

LAG_SECONDS = 0.001
"""From one agent to another."""

LATE_SECONDS = 2.0
"""How much later datagrams arrive at the most while some come twice."""


class HostWatchdog:
    """One machine's device, and what its agent's lives do with it. ``reset`` is what the machine does when it fires."""

    def __init__(
        self,
        name: str,
        settings: WatchdogSettings,
        network: FakeNetwork,
        *,
        reach: Transport,
        clock: Clock,
        seed: str,
        reset: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._name = name
        self._settings = settings
        self._network = network
        self._client = Client(reach, manager=NAME)
        self._clock = clock
        self._random = random_of(seed, f"{name}/watchdog")
        self._reset = reset
        self._world = Process(f"{name}: watchdog")
        self.device = FakeWatchdog(self._fires, path=settings.device)
        self._keeper: Keeper | None = None
        self._bound: tuple[str, int] | None = None
        self.told: Told | None = None
        """By the agent that lives, after its last round."""

    @property
    def ready(self) -> bool:
        """Whether it is armed, and counts others if it is to."""
        return self.told is not None and self.told.armed and (self._settings.peers is None or self.told.nodes > 0)

    def keep(self, process: Process, profile: Profile) -> None:
        """A life of the agent begins, in its process."""
        settings, peers = self._settings, self._peers(profile)
        keeper = self._keeper = Keeper(
            settings,
            device=WatchdogFile(settings.device, self.device),
            lease=KubeWatchdogLease(self._client, self._name, self._clock),
            clock=self._clock,
            boot_id=profile.boot_id,
            peers=peers,
            on_round=self._hear,
        )
        if peers:
            process.start(peers.run(), f"{self._name}: the watchdog's peers")
        process.start(keeper.run(), f"{self._name}: watchdog")

    def hold(self, status: Status) -> None:
        """As the agent's program does it: a node that goes down by itself is not to be disturbed."""
        if self._keeper:
            self._keeper.hold("the node is going down" if status.state in (State.ENDING, State.LEAVING) else "")

    def agent_died(self) -> None:
        """The kernel closes what it had."""
        self._keeper = self.told = None
        self.device.died()
        if self._bound:
            self._network.closed(self._bound)

    def switched_off(self) -> None:
        """The machine has no power any more."""
        self.device.switched_off()

    def _hear(self, told: Told) -> None:
        self.told = told

    def _peers(self, profile: Profile) -> Peers | None:
        if self._settings.peers is None:
            return None
        self._bound = (profile.address, self._settings.peers.port)
        return Peers(
            self._name,
            boot_id=profile.boot_id,
            port=self._settings.peers.port,
            members=KubeMembers(self._client),
            opens=self._network.open,
            clock=self._clock,
            pet=self._settings.pet_seconds,
            report=self._settings.armed().report,
            draw=self._random.randbytes,
        )

    def _fires(self) -> None:
        self._world.start(self._reset(), f"{self._name}: reset")


class Watchdogs:
    """Of all machines; ``truth`` hears of each reset."""

    def __init__(self, settings: WatchdogSettings, seed: str, truth: Truth) -> None:
        self._settings = settings
        self._seed = seed
        self._truth = truth
        self._random = random_of(seed, "datagrams")
        self._network = FakeNetwork(self._lag)
        self._network.copies = self._copies
        self.repeated = 0.0
        """The part of datagrams that arrives twice, the second time up to ``LATE_SECONDS`` later."""
        self._all: list[tuple[Machine, HostWatchdog]] = []

    def _copies(self) -> int:
        if not self.repeated or self._random.random() >= self.repeated:
            return 1
        self._truth.struck("doubled datagram", "watchdog peers")
        return 2

    def _lag(self, _: str, __: str) -> float:
        return LAG_SECONDS + (self._random.random() * LATE_SECONDS if self.repeated else 0.0)

    def of(self, machine: Machine, reach: Transport, clock: Clock) -> HostWatchdog:
        """That of one more; ``reach`` is its agent's way to the API server."""

        async def reset() -> None:
            self._truth.noticed(machine.name, "reset by its watchdog")
            await machine.reset()

        one = HostWatchdog(
            machine.name, self._settings, self._network, reach=reach, clock=clock, seed=self._seed, reset=reset
        )
        self._all.append((machine, one))
        return one

    def ready(self) -> bool:
        """All are, of the machines that are on."""
        return all(one.ready for machine, one in self._all if machine.powered)

    async def begin(self, admin: Client, *, rights: bool) -> None:
        """What agents need in the API, as an administrator makes it; with ``rights`` their roles too."""
        key = random_of(self._seed, "the watchdog's peers").randbytes(32)
        secret: Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": names.PEERS_SECRET, "namespace": SYSTEM_NAMESPACE},
            "data": {names.PEERS_KEY: base64.b64encode(key).decode()},
        }
        for name in (SYSTEM_NAMESPACE, names.NODES_NAMESPACE):
            await make(admin, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await make(admin, secret)
        for obj in objects(peers=True) if rights else ():
            await make(admin, obj)


def watchdogs_of(scenario: Scenario, seed: str, truth: Truth) -> Watchdogs | None:
    """Those that the scenario has; only lastcall's agent keeps them."""
    settings = scenario.agent.watchdog if scenario.agent else None
    return Watchdogs(settings, seed, truth) if settings and scenario.manager is Manager.LASTCALL else None
