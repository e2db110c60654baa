"""The guard and the agent of a node that shuts down: two programs, which know of each other by the API server alone."""

import asyncio
import functools
from random import Random

from support.agents.face_cluster import FaceCluster

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.guard_facts import KubeGuardFacts
from lastcall.adapters.kube.guard_policies import KubeGuardPolicies
from lastcall.adapters.kube.guard_records import KubeGuardActions, KubeGuardRecords
from lastcall.adapters.kube.node_shutdown_marks import NodeShutdownMarks
from lastcall.adapters.kube.own_pods import OwnPods
from lastcall.adapters.kube.resources import DEFINITIONS, GUARD_POLICIES, NAMESPACES, STATEFUL_SETS
from lastcall.aio import cancel_and_wait, wait_first
from lastcall.guard.controller.guarded_pod_controller import LOOK_SECONDS, GuardedPodController, GuardedPodPorts
from lastcall.guard.controller.preparation_controller import PreparationController
from lastcall.guard.controller.preparation_worker import WorkerPorts
from lastcall.manifests.guard_policy_definition import guard_policy_definition
from lastcall.names import GUARD_ENABLED
from lastcall.ports.guard import MemberHealth, PreparationProgress, PreparationReport
from lastcall_lab import virtual
from lastcall_lab.apiserver.server.in_process import InProcessTransport


class Database:
    """``ports.guard.GuardProvider`` and the providers of all policies; ready five seconds after ``prepare``."""

    is_reversible = True

    def __init__(self, clock):
        self.clock, self.prepared_at, self.is_frozen, self.ended = clock, None, False, []

    def make_policy_provider(self, policy):
        return self

    async def check_health(self, member):
        return MemberHealth(is_healthy=True)

    async def prepare(self, member):
        self.prepared_at = self.clock.boottime()

    async def check_progress(self, member):
        if self.is_frozen:
            return PreparationReport(progress=PreparationProgress.STALLED, message="a replica does not follow")
        is_done = self.clock.boottime() >= self.prepared_at + 5
        return PreparationReport(progress=PreparationProgress.READY if is_done else PreparationProgress.PREPARING)

    async def cancel(self, member):
        self.ended.append("cancel")

    async def release(self, member):
        self.ended.append("release")


class GuardedNode(FaceCluster):
    """The agent's face of the node n1, with a guarded pod of a StatefulSet, and a guard that leads."""

    def __init__(self, clock):
        super().__init__(clock)
        self.database = Database(clock)
        self.own_pods = OwnPods(self.client, "n1", clock=clock, random=Random(1), on_change=lambda: None)
        self.known_pods = FoundPods(self.own_pods)
        self.face = self.new_face()
        self.tasks = []

    async def set_up(self):
        await super().set_up()
        await self.admin.patch(NAMESPACES, "default", {"metadata": {"labels": {GUARD_ENABLED: "true"}}})
        await self.admin.create(DEFINITIONS, guard_policy_definition())
        await self.clock.sleep(10)
        template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
        spec = {"selector": {"matchLabels": {"app": "db"}}, "serviceName": "db", "template": template}
        self.owner = await self.admin.create(
            STATEFUL_SETS, {"metadata": {"name": "it"}, "spec": spec}, namespace="default"
        )
        policy = {
            "apiVersion": "lastcall.dev/v1alpha1",
            "kind": "GuardPolicy",
            "metadata": {"name": "db"},
            "spec": {"selector": {"matchLabels": {"app": "db"}}, "provider": {"http": {}}},
        }
        await self.admin.create(GUARD_POLICIES, policy, namespace="default")
        self.db = await self.make_pod(
            "db-0", owner="StatefulSet", uid=self.owner["metadata"]["uid"], labels={"app": "db"}
        )
        self.tasks.append(asyncio.ensure_future(self.own_pods.run()))
        self.lead()
        await self.clock.sleep(LOOK_SECONDS + 1)

    def lead(self):
        client = Client(InProcessTransport(self.server))
        policies, marks = (
            KubeGuardPolicies(client, self.clock, Random(2)),
            NodeShutdownMarks(client, self.clock, Random(3)),
        )
        facts, records = KubeGuardFacts(client, self.clock), KubeGuardRecords(client)
        actions = KubeGuardActions(client, client, self.clock, instance="me")
        workers = WorkerPorts(facts=facts, records=records, actions=actions, providers=self.database, clock=self.clock)
        pods = GuardedPodPorts(
            facts=facts,
            records=records,
            actions=actions,
            providers=self.database,
            policies=policies,
            shutdowns=marks,
            clock=self.clock,
        )
        running = (policies.run(), marks.run(), PreparationController(workers, policies).run())
        self.tasks.append(asyncio.ensure_future(wait_first(*running, GuardedPodController(pods).run())))

    async def end_pod(self, limit):
        """What a shutdown does with the pod: how long it waited for its application, and what came of it."""
        began = self.clock.boottime()
        readiness = await self.face.wait_until_prepared(self.db, lambda: began + limit)
        waited = self.clock.boottime() - began
        await self.face.begin_pod(self.db, 30.0, self.clock.boottime() + 5)
        return waited, readiness

    async def close(self):
        await self.face.close()
        await cancel_and_wait(*self.tasks)


class FoundPods:
    def __init__(self, own_pods):
        self.get = lambda uid: own_pods.pods.get(uid)  # noqa: PLW0108 - the pods are another mapping later


def on_guarded_node(test):
    """Runs ``test(node)`` in virtual time."""

    async def scene():
        node = GuardedNode(virtual.VirtualClock())
        await node.set_up()
        try:
            await test(node)
        finally:
            await node.close()

    @functools.wraps(test)
    def run():
        virtual.run(scene())

    del run.__wrapped__
    return run


@on_guarded_node
async def test_the_pod_is_deleted_when_its_application_is_ready(node):
    await node.face.begin_shutdown(node.clock.boottime() + 100)
    waited, readiness = await node.end_pod(limit=50)
    assert readiness.is_ready
    assert 5 <= waited < 10
    await node.clock.sleep(1)
    assert (await node.pod("db-0"))["metadata"]["deletionTimestamp"]


@on_guarded_node
async def test_the_deadline_wins(node):
    node.database.is_frozen = True
    await node.face.begin_shutdown(node.clock.boottime() + 100)
    waited, readiness = await node.end_pod(limit=50)
    assert (waited, readiness.is_ready) == (50, False)
    assert "a replica does not follow" in readiness.message
    await node.clock.sleep(1)
    assert (await node.pod("db-0"))["metadata"]["deletionTimestamp"]


@on_guarded_node
async def test_a_cancelled_shutdown_is_undone(node):
    await node.face.begin_shutdown(node.clock.boottime() + 100)
    await node.clock.sleep(10)
    assert node.database.prepared_at is not None
    await node.face.mark_ready()
    await node.clock.sleep(80)
    assert node.database.ended == ["cancel"]


@on_guarded_node
async def test_a_pod_that_no_policy_guards_waits_for_nothing(node):
    other = await node.make_pod("web")
    await node.clock.sleep(LOOK_SECONDS + 1)
    await node.face.begin_shutdown(node.clock.boottime() + 100)
    assert await node.face.wait_until_prepared(other, lambda: 1e9) is None
