"""Plays a scenario: starts the cluster, performs the events, and records the truth."""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from lastcall.adapters.kube.informer import ObjectKey
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import LastcallError
from lastcall.model.shutdown import PhasePlan
from lastcall_lab import virtual
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.simulation import foreign_fields, leftover_drains, unfinished_work
from lastcall_lab.simulation.actions.table import ACTIONS
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.failover import pending_failovers
from lastcall_lab.simulation.garbage_collection import collect_rarely, exempt_from_collection
from lastcall_lab.simulation.invariants import RunRecord
from lastcall_lab.simulation.network_faults import OLD_START
from lastcall_lab.simulation.request_losses import ServiceClients
from lastcall_lab.simulation.rules.base import TRAFFIC_SECONDS
from lastcall_lab.simulation.scenario import Scenario, ScenarioEvent, ScenarioShutdownManager, ScenarioWorkload
from lastcall_lab.simulation.volume_writers import VolumeWriters

log = logging.getLogger(__name__)


def service_key(workload: ScenarioWorkload) -> ObjectKey:
    """Its Service."""
    return ObjectKey(workload.namespace, workload.service or workload.name)


_OURS = (ScenarioShutdownManager.LASTCALL, ScenarioShutdownManager.BESIDE_KUBELET)


class Rehearsal:
    """One run. ``cluster`` is there to be asked while it goes on and afterwards, within the same loop.

    ``authorization`` is that of the API server.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int | str = 1,
        *,
        authorization: AuthorizationMode = AuthorizationMode.ALWAYS_ALLOW,
    ) -> None:
        self.scenario = scenario
        self.clock = virtual.VirtualClock(scenario.recorded.at) if scenario.recorded else virtual.VirtualClock()
        self.cluster = SimulatedCluster(scenario, self.clock, str(seed), authorization=authorization)
        self.start = 0.0
        """When time 0 of the scenario was."""
        cluster = self.cluster
        asked = [service_key(one) for one in scenario.workloads if one.requests]
        self.clients = ServiceClients(cluster.plane, self.clock, cluster.seed, asked, propagation=scenario.propagation)
        self.writers = VolumeWriters(cluster.storage, cluster.shelf, self.clock, cluster.truth, cluster.workload_of)
        self._excused: frozenset[str] = frozenset()
        """What was not as it should be when it began is nobody's failure."""
        self._deeds = OrderedTaskGroup()
        self._broken: list[Exception] = []

    async def run(self) -> None:
        """From power on to the end of the scenario."""
        with collect_rarely():
            with exempt_from_collection() if self.scenario.settled else nullcontext():
                await self.cluster.start()
            if self.scenario.recorded:
                self._excused = frozenset(unfinished_work.describe_unfinished(self.cluster))
            await self._run_timeline()

    async def _run_timeline(self) -> None:
        await foreign_fields.plant_foreign_fields(self.cluster)
        await self.clients.start()
        self.start = self.clock.boottime()
        for event in sorted(self.scenario.timeline, key=lambda one: one.at):
            await self.clock.sleep(self.start + event.at - self.clock.boottime())
            self._deeds.start(self._perform_event(event), event.verb.value)
        await self.clock.sleep(self.start + self.scenario.lasts - self.clock.boottime())
        await self._deeds.cancel()
        await self.clients.stop()
        await self.writers.stop()
        if self._broken:
            raise self._broken[0]

    def run_record(self) -> RunRecord:
        """The truth so far, to be judged."""
        truth, cluster = self.cluster.truth, self.cluster
        begun = [one.at for one in truth.faults if one.kind == OLD_START]
        return RunRecord(
            happenings=truth.happenings,
            powers=truth.powers,
            records=cluster.storage.records,
            pods=truth.pods,
            plan=self._phase_plan(),
            hooks={uid: one.pre_stop for uid, pod in truth.pods.items() if (one := cluster.workload_of(pod))},
            asked=truth.asked,
            lost=[f"{count} lines of {pod} on volume {volume}" for (pod, volume), count in self._lost_writes().items()],
            end=self.clock.boottime(),
            left=[one for one in self._unfinished_work() if one not in self._excused],
            changed=foreign_fields.changed_fields(cluster),
            orders=truth.orders,
            failover=self.scenario.failover,
            set_back=min([*truth.restores, *begun], default=math.inf),
            old_lists=truth.old_lists,
            bounded=self.scenario.manager in _OURS,
            beside=self.scenario.manager is ScenarioShutdownManager.BESIDE_KUBELET,
            node_objects=truth.node_objects,
            cordons=truth.cordons,
            endpoints=truth.endpoints,
            job_failures=truth.job_failures,
            drains=cluster.drains.describe_orders(),
            workloads=self.scenario.workloads,
            pod_states=truth.pod_states,
            cordon_states=truth.cordon_states,
            leases=truth.leases,
            budget_states=truth.budget_states,
            removal_requests=truth.removal_requests,
            clear_network=truth.clear_network,
            traffic=self.scenario.agent.traffic.limit_seconds if self.scenario.agent else TRAFFIC_SECONDS,
        )

    def _unfinished_work(self) -> Sequence[str]:
        """Work that a program cannot know of is not demanded from it."""
        if self.cluster.weather.loses_events:
            return ()
        cluster = self.cluster
        return [
            *unfinished_work.describe_unfinished(cluster),
            *pending_failovers.describe_pending(cluster),
            *leftover_drains.describe_leftovers(cluster),
            *cluster.truth.mistakes,
        ]

    def _phase_plan(self) -> Sequence[PhasePlan] | None:
        """What is promised to the pods of a machine that goes down."""
        if self.scenario.manager is ScenarioShutdownManager.NONE:
            return None
        return self.scenario.agent.groups if self.scenario.agent else ()

    def _lost_writes(self) -> Mapping[tuple[str, str], int]:
        """How many acknowledged writes of a pod, by its name, are not on a volume."""
        return Counter((one.file, one.volume) for one in self.writers.lost)

    async def _perform_event(self, event: ScenarioEvent) -> None:
        """What the lab itself cannot do is a mistake that ends the rehearsal; an answer of the cluster is not."""
        try:
            await ACTIONS[event.verb](self.cluster, event)
        except LastcallError as error:
            log.info("%s: %s", event.verb.value, error)
        except Exception as error:
            self._broken.append(error)
