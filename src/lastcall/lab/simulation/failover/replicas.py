"""The failover controller's processes: each can be killed between two awaits, cut off, and started again."""

import logging
from collections.abc import Mapping, Sequence

from lastcall.adapters.kube.election import Election
from lastcall.adapters.kube.failover_cluster import COMPONENT, KubeCluster
from lastcall.adapters.kube.watching import Key
from lastcall.aio import first
from lastcall.failover.deciding.concluding import Terms
from lastcall.failover.doing.controller import Controller, Outside
from lastcall.failover.doing.event_writer import Telling
from lastcall.failover.telling.happenings import Acted, Broke, Happening
from lastcall.lab.identities import service_account
from lastcall.lab.power import Cable
from lastcall.lab.simulation.clocks import NodeClock
from lastcall.lab.simulation.plane import Plane
from lastcall.lab.simulation.seeds import random_of
from lastcall.lab.simulation.truth import Truth
from lastcall.lab.virtual import Process
from lastcall.manifests.labels import NAME
from lastcall.names import SYSTEM_NAMESPACE
from lastcall.ports import Clock
from lastcall.ports_fences import Fences

log = logging.getLogger(__name__)

USER = service_account(SYSTEM_NAMESPACE, NAME)

_NOTICES = {
    "off": "switched off by its BMC, as lastcall asks",
    "on": "switched on by its BMC, as lastcall asks",
    "taint": "out of service, as lastcall has proved",
    "untaint": "in service again, as lastcall says",
    "force-delete": "a pod is removed by lastcall",
    "detach": "a volume is detached by lastcall",
}


class Replica:
    """One of the controller's processes, life after life; each has an identity of its own."""

    def __init__(self, number: int, plane: Plane, fences: Fences, clock: Clock, truth: Truth, seed: str) -> None:
        self.name = f"failover-{number}"
        self._fences = fences
        self.clock = NodeClock(clock)
        self._truth = truth
        self._seed = seed
        self._lives = 0
        self.cable = Cable(plane.reach(USER, self.name))
        self.process = Process(self.name)
        self.process.kill()
        self.controller: Controller | None = None
        self.fault = ""
        """Why it has ended by itself, which it never should."""

    @property
    def leads(self) -> bool:
        """Whether it may act now, as it sees it."""
        return self.process.alive and self.controller is not None and self.controller.status.leads

    def start(self) -> None:
        """Nothing if it lives."""
        if not self.process.alive:
            self._lives += 1
            self.process = Process(self.name)
            self.process.start(self._live(f"{self.name}_{self._lives}"), "failover controller")

    async def _live(self, me: str) -> None:
        """As ``wiring_controller.Program`` does, in this world."""
        random = random_of(self._seed, me)
        cluster = KubeCluster(self.cable, self.clock, random, instance=me)
        election = Election(
            cluster.client(self.cable), Key(SYSTEM_NAMESPACE, COMPONENT), me, clock=self.clock, random=random
        )
        telling = Telling(cluster, self.clock)
        outside = Outside(clock=self.clock, cluster=cluster, leadership=election, fences=self._fences)
        controller = self.controller = Controller(outside, Terms(me=me), listeners=[self._hear, telling.hear])
        try:
            await first(election.lead(controller.act), controller.observe(), telling.run())
        except Exception as error:  # a mistake of the controller's, which the rehearsal tells of
            log.exception("%s", me)
            self.fault = f"{me} has ended: {type(error).__name__}: {error}"

    def _hear(self, happening: Happening) -> None:
        match happening:
            case Acted(ended=float(), error="", verb=verb, node=node) if verb in _NOTICES:
                self._truth.noticed(node, _NOTICES[verb])
            case Broke(node=node, error=error):
                self.fault = f"{self.name} has broken off what it did about {node}: {type(error).__name__}: {error}"


class Replicas:
    """All of them; one leads at most."""

    def __init__(self, all_: Sequence[Replica]) -> None:
        self.all = all_

    def start(self) -> None:
        """Those that do not live."""
        for one in self.all:
            one.start()

    @property
    def lead(self) -> bool:
        """Whether one of them leads."""
        return any(one.leads for one in self.all)

    @property
    def leader(self) -> Replica:
        """The one that leads; else one that lives, else the first."""
        return max(self.all, key=lambda one: (one.leads, one.process.alive))

    def awaited(self) -> Mapping[str, str]:
        """What is waited for, by the nodes that are in trouble."""
        leader = self.leader
        workers = leader.controller.workers if leader.leads and leader.controller else ()
        return {one.name: one.sentence for one in workers}
