"""The guard of a simulated cluster: its replicas, the API server's way to them, and the applications that it asks."""

import json
from collections.abc import Sequence

import msgspec

from lastcall.adapters.kube.resources import GUARD_POLICIES, NAMESPACES
from lastcall.errors import NotFound, Unavailable
from lastcall.manifests.guard_webhooks import IGNORE
from lastcall.model.guard_policy import GuardPolicy
from lastcall.names import GUARD_ENABLED
from lastcall_lab.apiserver.admission.webhook_client import WebhookDestination, WebhookReply, WebhookUnreachable
from lastcall_lab.control_plane.create_objects import create_object
from lastcall_lab.fakes.guarded_application import GuardedApplication
from lastcall_lab.simulation.environment import SimulatedEnvironment
from lastcall_lab.simulation.guards import manifests
from lastcall_lab.simulation.guards.guard_replica import GuardReplica
from lastcall_lab.simulation.scenario import GuardSettings, ScenarioWorkload

_SOON = 0.1


class SimulatedGuards:
    """None, if the scenario has no guard. It is the API server's ``WebhookCaller``, and makes the guard's providers."""

    def __init__(self, cluster: SimulatedEnvironment) -> None:
        self._cluster = cluster
        self._settings = cluster.scenario.guard
        self.replicas: Sequence[GuardReplica] = ()
        self.applications = {one.name: _make_application(cluster, one) for one in _guarded_workloads(cluster)}
        """By the names of workloads."""
        self._turn = 0
        self._missed: set[str] = set()
        """The names of the pods whose last review nobody has answered, or not yet."""

    async def start(self) -> None:
        """A guard leads when this returns, if there is to be one."""
        if self._settings is None:
            return
        cluster = self._cluster
        for obj in manifests.simulation_objects():
            await create_object(cluster.plane.admin, obj)
        for workload in _guarded_workloads(cluster):
            labels = {"metadata": {"labels": {GUARD_ENABLED: "true"}}}
            await cluster.plane.admin.patch(NAMESPACES, workload.namespace, labels)
            await self._create_policy(workload)
        cluster.plane.server.webhooks.caller = self
        await create_object(cluster.plane.admin, manifests.webhook_configuration(self._settings))
        self.replicas = [self._make_replica(number, self._settings) for number in range(1, self._settings.replicas + 1)]
        for replica in self.replicas:
            replica.start()
        await cluster.wait_until(lambda: any(one.is_leader for one in self.replicas))

    def _make_replica(self, number: int, settings: GuardSettings) -> GuardReplica:
        cluster = self._cluster
        return GuardReplica(number, cluster.plane, self, cluster.clock, cluster.truth, cluster.seed)

    async def _create_policy(self, workload: ScenarioWorkload) -> None:
        """When its kind is served."""
        while True:
            try:
                policy = manifests.guard_policy(workload)
                await self._cluster.plane.admin.create(GUARD_POLICIES, policy, namespace=workload.namespace)
                return
            except NotFound:
                await self._cluster.clock.sleep(_SOON)

    @property
    def leader(self) -> GuardReplica | None:
        """The one that leads; else one that lives, else the first. None if there is no guard."""
        return max(self.replicas, key=lambda one: (one.is_leader, one.process.alive), default=None)

    def make_policy_provider(self, policy: GuardPolicy) -> GuardedApplication:
        """``GuardProviders.make_policy_provider``."""
        return self.applications[policy.name]

    async def call(self, destination: WebhookDestination, body: bytes) -> WebhookReply:
        """``WebhookCaller.call``: each replica that serves has its turn, as behind a Service."""
        name = json.loads(body)["request"]["name"]
        serving = [one for one in self.replicas if one.is_serving]
        self._missed.add(name)
        if not serving:
            raise WebhookUnreachable("connect: connection refused")
        self._turn += 1
        try:
            answer = await serving[self._turn % len(serving)].answer(body)
        except Unavailable as error:
            raise WebhookUnreachable("EOF") from error
        self._missed.discard(name)
        return WebhookReply(200, "application/json", msgspec.json.encode(answer))

    # -- the truth -----------------------------------------------------------------------------------------------------

    def had_work(self, app: str, uid: str) -> bool:
        """Whether a pod that goes now is guarded, and its application is not ready to lose it."""
        return app in self.applications and not self.applications[app].was_safe(uid)

    def has_missed(self, name: str) -> bool:
        """Whether no guard has answered for a pod that goes now, and its policy lets it go then."""
        assert self._settings
        return self._settings.failure_policy == IGNORE and name in self._missed


def _guarded_workloads(cluster: SimulatedEnvironment) -> Sequence[ScenarioWorkload]:
    return [one for one in cluster.scenario.workloads if one.prepares] if cluster.scenario.guard else []


def _make_application(cluster: SimulatedEnvironment, workload: ScenarioWorkload) -> GuardedApplication:
    application = GuardedApplication(cluster.clock, lambda: workload.replicas)
    application.seconds = workload.prepares
    return application
