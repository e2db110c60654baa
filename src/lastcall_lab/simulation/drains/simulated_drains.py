"""The processes of ``lastcall drain``: each can be killed between two awaits, and run again by the same command."""

import contextlib
import logging
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from lastcall.adapters.kube.budget_watch import KubeBudgetWatch
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.drain_cluster import COMPONENT, KubeDrainCluster
from lastcall.adapters.kube.drain_facts import DrainFactsReader
from lastcall.adapters.kube.drain_watch import KubeDrainWatch
from lastcall.adapters.kube.node_ownership import KubeNodeOwnership
from lastcall.adapters.kube.resources import NAMESPACES
from lastcall.adapters.kube.surge_cluster import KubeSurgeCluster
from lastcall.drain.decisions.drain_course import DrainCourse, NodeProgress
from lastcall.drain.execution.chosen_pods import make_chooser
from lastcall.drain.execution.drain_run import DrainParts, DrainRun
from lastcall.drain.execution.kept_surges import keep_surges
from lastcall.drain.execution.node_writer import NodeWriter, new_mark
from lastcall.drain.execution.surge_keeper import LEFT
from lastcall.drain.planning.drain_case import DrainCase, build_case
from lastcall.drain.planning.pod_filters import FilterFacts, FilterFate
from lastcall.errors import AlreadyExists, LastcallError
from lastcall.model.base import Facts
from lastcall.model.drain_limits import DrainLimits, TimeoutPolicy
from lastcall.model.drain_settings import DrainSettings
from lastcall.model.node_ownership import OwnershipClaim
from lastcall.names import DRAINS_NAMESPACE
from lastcall.ports.node import Clock
from lastcall_lab.apiserver.values.request import ADMIN
from lastcall_lab.simulation.control_plane import SimulatedControlPlane
from lastcall_lab.simulation.drains.drain_log import GuardWitness, record_drain_facts
from lastcall_lab.simulation.drains.drain_notices import DrainNotices
from lastcall_lab.simulation.drains.removal_requests import RecordedTransport
from lastcall_lab.simulation.drains.taken_rights import RightsTransport, TakenRights
from lastcall_lab.simulation.rules.base import DrainTold
from lastcall_lab.simulation.scenario import Verb
from lastcall_lab.simulation.seeds import random_of
from lastcall_lab.simulation.truth import Truth
from lastcall_lab.virtual import VirtualProcess

log = logging.getLogger(__name__)

DRAIN = "drain"
"""How the names of its processes begin."""

_PARTING = 100.0
"""Seconds for deletions after the end of the time, for what the Nodes say, and for what is put back."""

_SETTINGS = DrainSettings(ignore_daemonsets=True, delete_emptydir_data=True)


class DrainCommand(Facts, frozen=True):
    """What somebody types: ``lastcall drain NODES`` with its limits."""

    nodes: tuple[str, ...]
    limits: DrainLimits
    surges: bool = False


class DrainProcess:
    """One command, life after life. ``number`` tells it from others."""

    def __init__(
        self,
        number: int,
        command: DrainCommand,
        plane: SimulatedControlPlane,
        clock: Clock,
        truth: Truth,
        seed: str,
        rights: TakenRights,
    ) -> None:
        self.name = f"{DRAIN}-{number}"
        self.is_over = False
        """Whether it has ended by itself."""
        self.has_given_up = False
        """Whether it could not read the cluster: who has typed the command is told so, and may type it again."""
        self.has_left_surges = False
        """Whether it has said that a workload is not put back."""
        self.command = command
        self._plane, self._clock, self._truth, self._seed, self._rights = plane, clock, truth, seed, rights
        self._lives, self._begun = 0, 0.0
        self.process = VirtualProcess(self.name)
        self.process.kill()

    def start(self) -> None:
        """Begins a life: the command is given, again if it was given before."""
        self._lives += 1
        self._begun = self._clock.boottime()
        self.is_over = self.has_given_up = self.has_left_surges = False
        self.process = VirtualProcess(self.name)
        self.process.start(self._run_life(f"{self.name}-{self._lives}"), "lastcall drain")

    @property
    def is_late(self) -> bool:
        """Whether its life has lasted much longer than its time, and what ends a drain after it."""
        timeout = self.command.limits.timeout
        return bool(timeout) and self._clock.boottime() - self._begun > timeout + _PARTING

    async def _run_life(self, me: str) -> None:
        try:
            await self._drain(me)
        except LastcallError as error:
            self._tell(f"lastcall drain has ended: {error}")
        except Exception as error:  # a mistake of the drain's, which the rehearsal tells of
            log.exception("%s", me)
            self._truth.record_mistake(f"{me} has ended: {type(error).__name__}: {error}")
        self.is_over = True

    async def _drain(self, me: str) -> None:
        """As ``lastcall drain`` does, in this world."""
        permitted = RightsTransport(self._plane.transport_for(ADMIN, self.name), self._rights, self.name)
        transport = RecordedTransport(permitted, self._truth, me)
        client = Client(transport, manager=COMPONENT)
        moment = datetime.fromtimestamp(self._clock.wall(), UTC)
        self.has_given_up = True
        facts = (await DrainFactsReader(client).read()).facts
        self.has_given_up = False
        known = {node.name for node in facts.nodes}
        names = [name for name in self.command.nodes if name in known]
        case = build_case(facts, names, _SETTINGS, moment)
        if refused := [one for one in case.judged if one.verdict.fate is FilterFate.REFUSE]:
            self._tell(f"lastcall drains nothing: {refused[0].pod.key}: {refused[0].verdict.why}")
        elif names:
            run, surges = self._make_run(me, client, case), KubeSurgeCluster(client)
            async with keep_surges(surges, case, run, self._tell, self._clock, begins=self.command.surges) as put_back:
                await run.run(before_release=put_back)

    def _make_run(self, me: str, client: Client, case: DrainCase) -> DrainRun:
        names, clock, random = [node.name for node in case.nodes], self._clock, random_of(self._seed, me)
        cluster = KubeDrainCluster(client, clock, me)
        uids = {node.name: node.metadata.uid for node in case.nodes}
        sets = {(one.metadata.namespace, one.metadata.name) for one in case.facts.daemon_sets or ()}
        parts = DrainParts(
            cluster=cluster,
            evictions=cluster,
            ownership=KubeNodeOwnership(client, OwnershipClaim(me, ""), uids, clock),
            watch=KubeDrainWatch(client, names, clock, random),
            budgets=KubeBudgetWatch(client, clock, random),
            clock=clock,
            observer=DrainNotices(self._truth),
        )
        progress = tuple(NodeProgress(name=name) for name in names)
        return DrainRun(
            DrainCourse(settings=_SETTINGS, limits=self.command.limits, nodes=progress),
            case.nodes,
            parts,
            writer=NodeWriter(cluster, new_mark(me, "admin", "", clock.wall()), clock),
            choose=make_chooser(FilterFacts(_SETTINGS, case.now, sets), case.facts.dns),
        )

    def _tell(self, text: str) -> None:
        self.has_left_surges |= text.endswith(LEFT)
        for node in self.command.nodes:
            self._truth.record_notice(node, text)


class SimulatedDrains:
    """All commands that were given."""

    def __init__(
        self, plane: SimulatedControlPlane, clock: Clock, truth: Truth, seed: str, guards: GuardWitness
    ) -> None:
        self._plane, self._clock, self._truth, self._seed, self._guards = plane, clock, truth, seed, guards
        self.all: list[DrainProcess] = []
        self.rights = TakenRights(self._tell_refusal)
        self._begun = 0.0
        """When the first command was given."""

    async def begin(self, command: DrainCommand) -> None:
        """Gives a command. The namespace of its Leases, which an installation brings, is there."""
        with contextlib.suppress(AlreadyExists):
            await self._plane.admin.create(NAMESPACES, {"metadata": {"name": DRAINS_NAMESPACE}})
        if not self.all:
            self._begun = self._clock.boottime()
            record_drain_facts(self._plane.server.store, self._truth, self._guards)
            self._record_network()
            self._plane.weather.changed.append(self._record_network)
        number, rights = len(self.all) + 1, self.rights
        made = DrainProcess(number, command, self._plane, self._clock, self._truth, self._seed, rights)
        self.all.append(made)
        made.start()

    def _tell_refusal(self, right: str, program: str) -> None:
        self._truth.record_fault(Verb.TAKE_RIGHT.value, f"{program}: {right}")

    def _record_network(self) -> None:
        self._truth.record_network(clear=self._plane.weather.is_clear)

    def describe_orders(self) -> Mapping[str, DrainTold]:
        """What each was told, by the names of their processes.

        Time may be over as early as if it had begun with the first drain: what earlier drains of a node took counts.
        """
        return {one.name: self._orders_of(one) for one in self.all}

    def _orders_of(self, drain: DrainProcess) -> DrainTold:
        nodes, limits = drain.command.nodes, drain.command.limits
        timeout, lacks_leases = limits.timeout or math.inf, self.rights.has_refused("leases", drain.name)
        if limits.on_timeout is TimeoutPolicy.STOP:
            return DrainTold(nodes, stops_after=timeout, lacks_leases=lacks_leases)
        return DrainTold(nodes, deletes_from=self._begun + timeout, lacks_leases=lacks_leases)

    @property
    def under_way(self) -> Sequence[DrainProcess]:
        """Those that have not come to their end."""
        return [one for one in self.all if one.process.alive and not one.is_over]
