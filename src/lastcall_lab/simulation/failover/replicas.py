"""The failover controller's processes: each can be killed between two awaits, cut off, and started again."""

import logging
from collections.abc import Mapping, Sequence

from lastcall.adapters.kube.failover_cluster import COMPONENT, KubeCluster
from lastcall.adapters.kube.informer import ObjectKey
from lastcall.adapters.kube.leader_election import LeaderElector
from lastcall.aio import wait_first
from lastcall.failover.controller.event_writer import EventWriter
from lastcall.failover.controller.failover_controller import ControllerPorts, FailoverController
from lastcall.failover.decisions.case_facts import ControllerTerms
from lastcall.failover.reporting.controller_events import CallReported, Happening, ReconcilerFailed
from lastcall.manifests.labels import NAME
from lastcall.names import SYSTEM_NAMESPACE
from lastcall.ports.fences import FenceFactory
from lastcall.ports.node import Clock
from lastcall_lab.control_plane.identities import service_account_identity
from lastcall_lab.machines.power import NetworkCable
from lastcall_lab.simulation.clocks import NodeClock
from lastcall_lab.simulation.control_plane import SimulatedControlPlane
from lastcall_lab.simulation.seeds import random_of
from lastcall_lab.simulation.truth import Truth
from lastcall_lab.virtual import VirtualProcess

log = logging.getLogger(__name__)

USER = service_account_identity(SYSTEM_NAMESPACE, NAME)

_NOTICES = {
    "off": "switched off by its BMC, as lastcall asks",
    "on": "switched on by its BMC, as lastcall asks",
    "taint": "out of service, as lastcall has proved",
    "untaint": "in service again, as lastcall says",
    "force-delete": "a pod is removed by lastcall",
    "detach": "a volume is detached by lastcall",
}


class ControllerReplica:
    """One of the controller's processes, life after life; each has an identity of its own."""

    def __init__(
        self, number: int, plane: SimulatedControlPlane, fences: FenceFactory, clock: Clock, truth: Truth, seed: str
    ) -> None:
        self.name = f"failover-{number}"
        self._fences = fences
        self.clock = NodeClock(clock)
        self._truth = truth
        self._seed = seed
        self._lives = 0
        self.cable = NetworkCable(plane.transport_for(USER, self.name))
        self.process = VirtualProcess(self.name)
        self.process.kill()
        self.controller: FailoverController | None = None
        self.fault = ""
        """Why it has ended by itself, which it never should."""

    @property
    def is_leader(self) -> bool:
        """Whether it may act now, as it sees it."""
        return self.process.alive and self.controller is not None and self.controller.status.leads

    def start(self) -> None:
        """Nothing if it lives."""
        if not self.process.alive:
            self._lives += 1
            self.process = VirtualProcess(self.name)
            self.process.start(self._run_life(f"{self.name}_{self._lives}"), "failover controller")

    async def _run_life(self, me: str) -> None:
        """As ``wiring_controller.Program`` does, in this world."""
        random = random_of(self._seed, me)
        cluster = KubeCluster(self.cable, self.clock, random, instance=me)
        election = LeaderElector(
            cluster.health_tracking_client(self.cable),
            ObjectKey(SYSTEM_NAMESPACE, COMPONENT),
            me,
            clock=self.clock,
            random=random,
        )
        telling = EventWriter(cluster, self.clock, lambda: controller.is_removing)
        outside = ControllerPorts(clock=self.clock, cluster=cluster, leadership=election, fences=self._fences)
        controller = self.controller = FailoverController(
            outside, ControllerTerms(me=me), listeners=[self._on_happening, telling.handle_event]
        )
        try:
            await wait_first(election.lead(controller.act), controller.observe(), telling.run())
        except Exception as error:  # a mistake of the controller's, which the rehearsal tells of
            log.exception("%s", me)
            self.fault = f"{me} has ended: {type(error).__name__}: {error}"

    def _on_happening(self, happening: Happening) -> None:
        match happening:
            case CallReported(ended=float(), error="", verb=verb, node=node) if verb in _NOTICES:
                self._truth.record_notice(node, _NOTICES[verb])
            case ReconcilerFailed(node=node, error=error):
                self.fault = f"{self.name} has broken off what it did about {node}: {type(error).__name__}: {error}"


class ControllerReplicas:
    """All of them; one leads at most."""

    def __init__(self, all_: Sequence[ControllerReplica]) -> None:
        self.all = all_

    def start(self) -> None:
        """Those that do not live."""
        for one in self.all:
            one.start()

    @property
    def has_leader(self) -> bool:
        """Whether one of them leads."""
        return any(one.is_leader for one in self.all)

    @property
    def leader(self) -> ControllerReplica:
        """The one that leads; else one that lives, else the first."""
        return max(self.all, key=lambda one: (one.is_leader, one.process.alive))

    def awaited_by_node(self) -> Mapping[str, str]:
        """What is waited for, by the nodes that are in trouble."""
        leader = self.leader
        workers = leader.controller.reconcilers if leader.is_leader and leader.controller else ()
        return {one.name: one.sentence for one in workers}
