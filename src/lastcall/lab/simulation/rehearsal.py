"""Plays a scenario: the cluster comes up, what is to happen happens, and the truth is what comes out."""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from lastcall.adapters.kube.watching import Key
from lastcall.aio import Group
from lastcall.errors import LastcallError
from lastcall.lab import virtual
from lastcall.lab.apiserver.authorization.authorizer import Authorization
from lastcall.lab.simulation import theirs, unfinished
from lastcall.lab.simulation.cluster import Cluster
from lastcall.lab.simulation.collecting import made_to_stay, seldom_collected
from lastcall.lab.simulation.deeds.table import DEEDS
from lastcall.lab.simulation.failover import leftovers
from lastcall.lab.simulation.invariants import Run
from lastcall.lab.simulation.scenario import Event, Manager, Scenario, Workload
from lastcall.lab.simulation.traffic import Clients
from lastcall.lab.simulation.weather import OLD_START
from lastcall.lab.simulation.writers import Writers
from lastcall.model.shutdown import PhasePlan

log = logging.getLogger(__name__)


def service_key(workload: Workload) -> Key:
    """Its Service."""
    return Key(workload.namespace, workload.service or workload.name)


class Rehearsal:
    """One run. ``cluster`` is there to be asked while it goes on and afterwards, within the same loop.

    ``authorization`` is that of the API server.
    """

    def __init__(
        self, scenario: Scenario, seed: int | str = 1, *, authorization: Authorization = Authorization.ALWAYS_ALLOW
    ) -> None:
        self.scenario = scenario
        self.clock = virtual.VirtualClock(scenario.recorded.at) if scenario.recorded else virtual.VirtualClock()
        self.cluster = Cluster(scenario, self.clock, str(seed), authorization=authorization)
        self.start = 0.0
        """When time 0 of the scenario was."""
        cluster = self.cluster
        asked = [service_key(one) for one in scenario.workloads if one.requests]
        self.clients = Clients(cluster.plane, self.clock, cluster.seed, asked, propagation=scenario.propagation)
        self.writers = Writers(cluster.storage, cluster.shelf, self.clock, cluster.truth, cluster.workload_of)
        self._excused: frozenset[str] = frozenset()
        """What was not as it should be when it began is nobody's failure."""
        self._deeds = Group()
        self._broken: list[Exception] = []

    async def run(self) -> None:
        """From power on to the end of the scenario."""
        with seldom_collected():
            with made_to_stay() if self.scenario.settled else nullcontext():
                await self.cluster.begin()
            if self.scenario.recorded:
                self._excused = frozenset(unfinished.left(self.cluster))
            await self._play()

    async def _play(self) -> None:
        await theirs.plant(self.cluster)
        await self.clients.begin()
        self.start = self.clock.boottime()
        for event in sorted(self.scenario.timeline, key=lambda one: one.at):
            await self.clock.sleep(self.start + event.at - self.clock.boottime())
            self._deeds.start(self._do(event), event.verb.value)
        await self.clock.sleep(self.start + self.scenario.lasts - self.clock.boottime())
        await self._deeds.cancel()
        await self.clients.end()
        await self.writers.end()
        if self._broken:
            raise self._broken[0]

    def record(self) -> Run:
        """The truth so far, to be judged."""
        truth, cluster = self.cluster.truth, self.cluster
        begun = [one.at for one in truth.faults if one.kind == OLD_START]
        return Run(
            happenings=truth.happenings,
            powers=truth.powers,
            records=cluster.storage.records,
            pods=truth.pods,
            plan=self._plan(),
            hooks={uid: one.pre_stop for uid, pod in truth.pods.items() if (one := cluster.workload_of(pod))},
            asked=truth.asked,
            lost=[f"{count} lines of {pod} on volume {volume}" for (pod, volume), count in self._lost().items()],
            end=self.clock.boottime(),
            left=[one for one in self._left() if one not in self._excused],
            changed=theirs.changed(cluster),
            orders=truth.orders,
            failover=self.scenario.failover,
            set_back=min([*truth.restores, *begun], default=math.inf),
            bounded=self.scenario.manager is Manager.LASTCALL,
        )

    def _left(self) -> Sequence[str]:
        """Of who does not know what has happened nobody can demand that he ends it."""
        if self.cluster.weather.loses:
            return ()
        return [*unfinished.left(self.cluster), *leftovers.left(self.cluster)]

    def _plan(self) -> Sequence[PhasePlan] | None:
        """What is promised to the pods of a machine that goes down."""
        if self.scenario.manager is Manager.NONE:
            return None
        return self.scenario.agent.groups if self.scenario.agent else ()

    def _lost(self) -> Mapping[tuple[str, str], int]:
        """How many acknowledged writes of a pod, by its name, are not on a volume."""
        return Counter((one.file, one.volume) for one in self.writers.lost)

    async def _do(self, event: Event) -> None:
        """What the lab itself cannot do is a mistake that ends the rehearsal; an answer of the cluster is not."""
        try:
            await DEEDS[event.verb](self.cluster, event)
        except LastcallError as error:
            log.info("%s: %s", event.verb.value, error)
        except Exception as error:
            self._broken.append(error)
