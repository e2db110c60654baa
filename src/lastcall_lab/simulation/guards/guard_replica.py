"""The guard's processes: each can be killed between two awaits, and started again."""

import logging
from random import Random
from typing import Any

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.guard_facts import KubeGuardFacts
from lastcall.adapters.kube.guard_policies import KubeGuardPolicies
from lastcall.adapters.kube.guard_records import COMPONENT, KubeGuardActions, KubeGuardRecords
from lastcall.adapters.kube.impersonation import ImpersonatingTransport
from lastcall.adapters.kube.informer import ObjectKey
from lastcall.adapters.kube.leader_election import LeaderElector
from lastcall.adapters.kube.node_shutdown_marks import NodeShutdownMarks
from lastcall.aio import wait_first
from lastcall.guard.controller.guarded_pod_controller import GuardedPodController, GuardedPodPorts
from lastcall.guard.controller.preparation_controller import PreparationController
from lastcall.guard.controller.preparation_worker import WorkerPorts
from lastcall.guard.controller.review_service import ReviewService
from lastcall.names import GUARD_RELEASER, SYSTEM_NAMESPACE
from lastcall.ports.guard_cluster import GuardProviders
from lastcall.ports.node import Clock
from lastcall_lab.control_plane.identities import service_account_identity
from lastcall_lab.simulation.control_plane import SimulatedControlPlane
from lastcall_lab.simulation.seeds import random_of
from lastcall_lab.simulation.truth import Truth
from lastcall_lab.virtual import VirtualProcess, run_within

log = logging.getLogger(__name__)

_USER = service_account_identity(SYSTEM_NAMESPACE, COMPONENT)


class GuardReplica:
    """One of the guard's processes, life after life: it answers reviews, and prepares while it leads."""

    def __init__(
        self,
        number: int,
        plane: SimulatedControlPlane,
        providers: GuardProviders,
        clock: Clock,
        truth: Truth,
        seed: str,
    ) -> None:
        self.name = f"guard-{number}"
        self._plane, self._providers, self._clock, self._truth, self._seed = plane, providers, clock, truth, seed
        self._lives = 0
        self._reviews: ReviewService | None = None
        self._election: LeaderElector | None = None
        self.process = VirtualProcess(self.name)
        self.process.kill()

    @property
    def is_leader(self) -> bool:
        """Whether it may act now, as it sees it."""
        return self.process.alive and self._election is not None and self._election.leads

    @property
    def is_serving(self) -> bool:
        """Whether it answers reviews."""
        return self.process.alive and self._reviews is not None

    def start(self) -> None:
        """Nothing if it lives."""
        if not self.process.alive:
            self._lives += 1
            self._reviews = self._election = None
            self.process = VirtualProcess(self.name)
            self.process.start(self._run_life(f"{self.name}_{self._lives}"), "guard")

    async def answer(self, body: bytes) -> dict[str, Any]:
        """The review that answers the one in ``body``; Unavailable if it dies meanwhile."""
        assert self._reviews is not None
        return await run_within(self.process, self._reviews.answer(body), "review")

    async def _run_life(self, me: str) -> None:
        """As ``wiring.guard.GuardProgram`` does, in this world."""
        random = random_of(self._seed, me)
        transport = self._plane.transport_for(_USER, self.name)
        client, clock = Client(transport, manager=COMPONENT), self._clock
        facts, records = KubeGuardFacts(client, clock), KubeGuardRecords(client)
        key = ObjectKey(SYSTEM_NAMESPACE, COMPONENT)
        self._reviews = ReviewService(facts, records, clock)
        self._election = LeaderElector(client, key, me, clock=clock, random=random)
        releaser = Client(ImpersonatingTransport(transport, GUARD_RELEASER), manager=COMPONENT)
        actions = KubeGuardActions(client, releaser, clock, instance=me)
        ports = WorkerPorts(facts=facts, records=records, actions=actions, providers=self._providers, clock=clock)
        try:
            await self._election.lead(lambda: _lead(client, ports, clock, random))
        except Exception as error:  # a mistake of the guard's, which the rehearsal tells of
            log.exception("%s", me)
            self._truth.record_mistake(f"{me} has ended: {type(error).__name__}: {error}")


async def _lead(client: Client, ports: WorkerPorts, clock: Clock, random: Random) -> None:
    policies, marks = KubeGuardPolicies(client, clock, random), NodeShutdownMarks(client, clock, random)
    guarded = GuardedPodPorts(
        facts=ports.facts,
        records=ports.records,
        actions=ports.actions,
        providers=ports.providers,
        policies=policies,
        shutdowns=marks,
        clock=clock,
    )
    preparations = PreparationController(ports, policies)
    await wait_first(policies.run(), marks.run(), preparations.run(), GuardedPodController(guarded).run())
