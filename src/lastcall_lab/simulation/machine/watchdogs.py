"""Watchdogs of the simulated machines, kept by lastcall's own keepers, and the network by which their agents ask each other.

That network is not the way to the control plane: agents that are cut off from that one still hear each other.
"""

import base64
from collections.abc import Callable, Coroutine
from typing import Any

from lastcall import names
from lastcall.adapters.host.watchdog_device import WatchdogDeviceFile
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.members import KubeMembers
from lastcall.adapters.kube.resources import Object
from lastcall.adapters.kube.transport import Transport
from lastcall.adapters.kube.watchdog_lease import KubeWatchdogLease
from lastcall.graceful.agent import AgentStatus
from lastcall.graceful.state_machine import AgentState
from lastcall.manifests.agent import agent_access_objects
from lastcall.manifests.daemon_set import NAME
from lastcall.model.watchdog import WatchdogSettings
from lastcall.names import SYSTEM_NAMESPACE
from lastcall.ports.node import Clock
from lastcall.watchdog.keeper import WatchdogKeeper
from lastcall.watchdog.keeper_status import KeeperStatus
from lastcall.watchdog.peers import WatchdogPeers
from lastcall_lab.control_plane.create_objects import create_object
from lastcall_lab.fakes.datagrams import FakeNetwork
from lastcall_lab.fakes.watchdog import FakeWatchdog
from lastcall_lab.kubelet.base.settings import NodeProfile
from lastcall_lab.machines.power import LabMachine
from lastcall_lab.simulation.scenario import Scenario, ScenarioShutdownManager
from lastcall_lab.simulation.seeds import random_of
from lastcall_lab.simulation.truth import Truth
from lastcall_lab.virtual import VirtualProcess

LAG_SECONDS = 0.001
"""From one agent to another."""

LATE_SECONDS = 2.0
"""How much later datagrams arrive at the most while some come twice."""


class SimulatedWatchdog:
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
        self._world = VirtualProcess(f"{name}: watchdog")
        self.device = FakeWatchdog(self._on_timeout, path=settings.device)
        self._keeper: WatchdogKeeper | None = None
        self._bound: tuple[str, int] | None = None
        self.told: KeeperStatus | None = None
        """By the agent that lives, after its last round."""

    @property
    def is_armed(self) -> bool:
        """Whether it is armed, and counts others if it is to."""
        return self.told is not None and self.told.armed and (self._settings.peers is None or self.told.nodes > 0)

    def start_keeper(self, process: VirtualProcess, profile: NodeProfile) -> None:
        """A life of the agent begins, in its process."""
        settings, peers = self._settings, self._peer_service(profile)
        keeper = self._keeper = WatchdogKeeper(
            settings,
            device=WatchdogDeviceFile(settings.device, self.device),
            lease=KubeWatchdogLease(self._client, self._name, self._clock),
            clock=self._clock,
            boot_id=profile.boot_id,
            peers=peers,
            on_round=self._on_keeper_status,
        )
        if peers:
            process.start(peers.run(), f"{self._name}: the watchdog's peers")
        process.start(keeper.run(), f"{self._name}: watchdog")

    def pass_agent_status(self, status: AgentStatus) -> None:
        """As the agent's program does it: a node that goes down by itself is not to be disturbed."""
        if self._keeper:
            self._keeper.suspend(
                "the node is shutting down" if status.state in (AgentState.ENDING, AgentState.RELEASED) else ""
            )

    def on_agent_death(self) -> None:
        """The kernel closes what it had."""
        self._keeper = self.told = None
        self.device.kill_holder()
        if self._bound:
            self._network.remove_socket(self._bound)

    def on_power_off(self) -> None:
        """The machine has no power any more."""
        self.device.cut_power()

    def _on_keeper_status(self, told: KeeperStatus) -> None:
        self.told = told

    def _peer_service(self, profile: NodeProfile) -> WatchdogPeers | None:
        if self._settings.peers is None:
            return None
        self._bound = (profile.address, self._settings.peers.port)
        return WatchdogPeers(
            self._name,
            boot_id=profile.boot_id,
            port=self._settings.peers.port,
            members=KubeMembers(self._client),
            opens=self._network.open,
            clock=self._clock,
            pet=self._settings.pet_seconds,
            report=self._settings.timing_with().report_after,
            draw=self._random.randbytes,
        )

    def _on_timeout(self) -> None:
        self._world.start(self._reset(), f"{self._name}: reset")


class SimulatedWatchdogs:
    """Of all machines; ``truth`` hears of each reset."""

    def __init__(self, settings: WatchdogSettings, seed: str, truth: Truth) -> None:
        self._settings = settings
        self._seed = seed
        self._truth = truth
        self._random = random_of(seed, "datagrams")
        self._network = FakeNetwork(self._datagram_delay)
        self._network.copies = self._datagram_copies
        self.repeated = 0.0
        """The part of datagrams that arrives twice, the second time up to ``LATE_SECONDS`` later."""
        self._all: list[tuple[LabMachine, SimulatedWatchdog]] = []

    def _datagram_copies(self) -> int:
        if not self.repeated or self._random.random() >= self.repeated:
            return 1
        self._truth.record_fault("doubled datagram", "watchdog peers")
        return 2

    def _datagram_delay(self, _: str, __: str) -> float:
        return LAG_SECONDS + (self._random.random() * LATE_SECONDS if self.repeated else 0.0)

    def add_machine(self, machine: LabMachine, reach: Transport, clock: Clock) -> SimulatedWatchdog:
        """That of one more; ``reach`` is its agent's way to the API server."""

        async def reset() -> None:
            self._truth.record_notice(machine.name, "reset by its watchdog")
            await machine.reset()

        one = SimulatedWatchdog(
            machine.name, self._settings, self._network, reach=reach, clock=clock, seed=self._seed, reset=reset
        )
        self._all.append((machine, one))
        return one

    def are_armed(self) -> bool:
        """All are, of the machines that are on."""
        return all(one.is_armed for machine, one in self._all if machine.is_powered)

    async def create_objects(self, admin: Client, *, rights: bool) -> None:
        """What agents need in the API, as an administrator makes it; with ``rights`` their roles too."""
        key = random_of(self._seed, "the watchdog's peers").randbytes(32)
        secret: Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": names.PEERS_SECRET, "namespace": SYSTEM_NAMESPACE},
            "data": {names.PEERS_KEY: base64.b64encode(key).decode()},
        }
        for name in (SYSTEM_NAMESPACE, names.NODES_NAMESPACE):
            await create_object(admin, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await create_object(admin, secret)
        for obj in agent_access_objects(peers=True) if rights else ():
            await create_object(admin, obj)


def create_watchdogs(scenario: Scenario, seed: str, truth: Truth) -> SimulatedWatchdogs | None:
    """Those that the scenario has; only lastcall's agent keeps them."""
    settings = scenario.agent.watchdog if scenario.agent else None
    return (
        SimulatedWatchdogs(settings, seed, truth)
        if settings and scenario.manager is ScenarioShutdownManager.LASTCALL
        else None
    )
