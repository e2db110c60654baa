"""A cluster in virtual time with the guard in front: the lab's API server and controllers, and the guard's own parts.

All of the guard is real but its TLS and its provider: the webhook configuration with its CEL, the answers, the records, the
leader's loops, its ServiceAccounts with the rights of the manifests. The provider is an application that knows by itself
which members have nothing to lose.
"""

import asyncio
import json
from random import Random

from support.lab.controller_cluster import LabCluster
from support.lab.small_kubelets import Kubelet
from support.lab.workloads import template

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.guard_facts import KubeGuardFacts
from lastcall.adapters.kube.guard_policies import KubeGuardPolicies
from lastcall.adapters.kube.guard_records import KubeGuardActions, KubeGuardRecords
from lastcall.adapters.kube.impersonation import ImpersonatingTransport
from lastcall.adapters.kube.node_shutdown_marks import NodeShutdownMarks
from lastcall.adapters.kube.resources import GUARD_POLICIES, NODES, PODS, STATEFUL_SETS, VALIDATING_WEBHOOKS
from lastcall.adapters.webhook.webhook_configuration import WebhookConfiguration
from lastcall.aio import cancel_and_wait, wait_first
from lastcall.guard.controller.guarded_pod_controller import GuardedPodController, GuardedPodPorts
from lastcall.guard.controller.preparation_controller import PreparationController
from lastcall.guard.controller.preparation_worker import WorkerPorts
from lastcall.guard.controller.review_service import ReviewService
from lastcall.guard.controller.uninstallation import Uninstallation
from lastcall.manifests.guard import GuardChoices, guard_objects, guarded_namespace_objects
from lastcall.manifests.guard_grants import NAME as GUARD
from lastcall.manifests.guard_webhooks import CONFIGURATION, FAIL, guard_webhook_configuration, url_client
from lastcall.manifests.uninstall_webhook import uninstall_webhook_configuration
from lastcall.names import GUARD_RELEASER, GUARD_UNINSTALL, SYSTEM_NAMESPACE
from lastcall.ports.guard import MemberHealth, PreparationProgress, PreparationReport
from lastcall_lab import virtual
from lastcall_lab.apiserver.admission.webhook_client import WebhookReply
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import Request, UserInfo
from lastcall_lab.control_plane.controller_set import make_controllers
from lastcall_lab.control_plane.create_objects import create_object
from lastcall_lab.control_plane.identities import service_account_identity

SHOP = "shop"
CONTROLLERS = ("deployment", "disruption", "garbage-collector", "namespace", "podgc", "replicaset", "statefulset")
RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
DB = {"app": "db"}


class Database:
    """``ports.guard.GuardProvider``, for all policies: a member has nothing to lose ``seconds`` after ``prepare``."""

    is_reversible = True

    def __init__(self, clock):
        self._clock = clock
        self.seconds = 30.0
        self._moves = {}
        self.calls = []

    def make_policy_provider(self, policy):
        return self

    def is_safe(self, uid):
        """The ground truth."""
        return uid in self._moves and self._clock.boottime() >= self._moves[uid] + self.seconds

    async def check_health(self, member):
        return MemberHealth(is_healthy=True)

    async def prepare(self, member):
        self.calls.append("prepare")
        self._moves.setdefault(member.pod.metadata.uid, self._clock.boottime())

    async def check_progress(self, member):
        is_done = self.is_safe(member.pod.metadata.uid)
        return PreparationReport(progress=PreparationProgress.READY if is_done else PreparationProgress.PREPARING)

    async def cancel(self, member):
        self.calls.append("cancel")
        self._moves.pop(member.pod.metadata.uid, None)

    async def release(self, member):
        self.calls.append("release")
        self._moves.pop(member.pod.metadata.uid, None)


class GuardedCluster(LabCluster):
    """With a guard that leads and answers, and the guarded StatefulSet ``db`` of three pods in the namespace ``shop``."""

    def __init__(self, clock):
        super().__init__(clock, [one for one in make_controllers("") if one.name in CONTROLLERS])
        self.database = Database(clock)
        self.server.webhooks.caller = self
        self.kubelet = Kubelet(self, nodes=("n1", "n2"))
        self.asked, self.allowed = 0, []
        """How many reviews there were; each allowance: pod, reason, and whether the pod had nothing to lose."""
        self.is_authenticated = True
        """Whether the guard knows the API server when it is shown an uninstallation."""
        self._tasks = []

    async def bind(self, pod, node):
        target = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
        await self.client.create_subresource(PODS, pod, "binding", target, namespace=SHOP)

    async def begin(self):
        """Installs and starts all of it; returns when the guard leads and the pods are ready."""
        configuration = guard_webhook_configuration(url_client("https://guard.example/review"), failure_policy=FAIL)
        wanted = [one for one in guard_objects(GuardChoices()) if one["kind"] in (*RIGHTS, "CustomResourceDefinition")]
        ending = uninstall_webhook_configuration(url_client("https://guard.example/uninstall"))
        for obj in [*wanted, *guarded_namespace_objects(SHOP), configuration, ending]:
            await create_object(self.client, obj)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": SHOP}}
        await create_object(self.client, account)
        for name in ("n1", "n2"):
            await self.client.create(NODES, {"metadata": {"name": name}})
        await self.clock.sleep(10)  # until the kind GuardPolicy is served
        policy = {
            "apiVersion": "lastcall.dev/v1alpha1",
            "kind": "GuardPolicy",
            "metadata": {"name": "db"},
            "spec": {"selector": {"matchLabels": DB}, "provider": {"http": {}}},
        }
        await self.client.create(GUARD_POLICIES, policy, namespace=SHOP)
        self._tasks += map(asyncio.ensure_future, (self.runner.run(), self.kubelet.run(), self._lead()))
        spec = {"replicas": 3, "serviceName": "db", "selector": {"matchLabels": DB}, "template": template(labels=DB)}
        await self.client.create(STATEFUL_SETS, {"metadata": {"name": "db"}, "spec": spec}, namespace=SHOP)
        await self.until(lambda: len(self.ready_pods()) == 3)

    async def close(self):
        """Ends all of it."""
        await cancel_and_wait(*self._tasks)

    def _lead(self):
        """The guard, as its own ServiceAccounts."""
        own = InProcessTransport(self.server, service_account_identity(SYSTEM_NAMESPACE, GUARD))
        client, clock = Client(own, manager=GUARD), self.clock
        releaser = Client(ImpersonatingTransport(own, GUARD_RELEASER), manager=GUARD)
        policies, marks = KubeGuardPolicies(client, clock, Random(2)), NodeShutdownMarks(client, clock, Random(3))
        parts = {
            "facts": KubeGuardFacts(client, clock),
            "records": KubeGuardRecords(client),
            "actions": KubeGuardActions(client, releaser, clock, instance="guard-1"),
            "providers": self.database,
            "clock": clock,
        }
        self._reviews = ReviewService(parts["facts"], parts["records"], clock)
        holds = WebhookConfiguration(client, VALIDATING_WEBHOOKS, CONFIGURATION, path="/review")
        self._uninstallation = Uninstallation(holds, parts["facts"], parts["records"], clock)
        guarded = GuardedPodController(GuardedPodPorts(**parts, policies=policies, shutdowns=marks))
        preparations = PreparationController(WorkerPorts(**parts), policies)
        return wait_first(policies.run(), marks.run(), preparations.run(), guarded.run())

    async def call(self, destination, body):
        """``WebhookCaller.call``: the guard's answer."""
        if "/other?" in destination.url:
            return WebhookReply(200, "application/json", json.dumps(self._answer_other(body)).encode())
        if "/uninstall?" in destination.url:
            answer = await self._uninstallation.answer(body, is_authenticated=self.is_authenticated)
            return WebhookReply(200, "application/json", json.dumps(answer).encode())
        self.asked += 1
        answer, request = await self._reviews.answer(body), json.loads(body)["request"]
        if answer["response"]["allowed"]:
            pod = request["oldObject"] or self.pod(request["name"])
            reason = answer["response"]["auditAnnotations"]["reason"]
            self.allowed.append((pod["metadata"]["name"], reason, self.database.is_safe(pod["metadata"]["uid"])))
        return WebhookReply(200, "application/json", json.dumps(answer).encode())

    async def add_other_webhook(self):
        """Another webhook for deletions and evictions of pods, which denies all of them while ``other_denies``."""
        found = guard_webhook_configuration(url_client("https://policy.example/other"), failure_policy=FAIL)
        await self.client.create(VALIDATING_WEBHOOKS, {**found, "metadata": {"name": "other"}})
        self.other_denies = True

    def _answer_other(self, body):
        status = {"code": 403, "reason": "Forbidden", "message": "a backup runs"}
        uid = json.loads(body)["request"]["uid"]
        response = (
            {"uid": uid, "allowed": False, "status": status} if self.other_denies else {"uid": uid, "allowed": True}
        )
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

    # -- looking -------------------------------------------------------------------------------------------------------

    def pod(self, name="db-0"):
        """One of the pods; None if there is none."""
        return self.get(PODS, name)

    def ready_pods(self):
        """The names of those that serve."""
        return [one["metadata"]["name"] for one in self.all(PODS) if _serves(one)]

    def is_going(self, uid):
        """Whether it is terminating, or gone."""
        found = next((one for one in self.all(PODS) if one["metadata"]["uid"] == uid), None)
        return found is None or bool(found["metadata"].get("deletionTimestamp"))

    def entries(self):
        """What the policy records, by pod."""
        [policy] = self.all(GUARD_POLICIES)
        return {one["name"]: one for one in policy.get("status", {}).get("pods", ())}

    # -- asking --------------------------------------------------------------------------------------------------------

    async def ask(self, user, method, target, body=None, kind="application/json"):
        """The code of an answer and the answer, as a user who may do all."""
        data = json.dumps(body).encode() if body is not None else b""
        who = UserInfo(user, ("system:masters", "system:authenticated"))
        response = await self.server.handle(
            Request.of(method, target, body=data, headers={"content-type": kind}, user=who)
        )
        return response.status, json.loads(response.body)

    async def evict(self, user, name="db-0", *, version="policy/v1", **options):
        """POSTs an Eviction."""
        body = {"apiVersion": version, "kind": "Eviction", "metadata": {"name": name, "namespace": SHOP}}
        path = f"/api/v1/namespaces/{SHOP}/pods/{name}/eviction"
        return await self.ask(user, "POST", path, {**body, **({"deleteOptions": options} if options else {})})

    async def uninstall(self, *, dry_run=False):
        """What the chart's hook does: the code, and the seconds that it took."""
        begun = self.clock.boottime()
        path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps{'?dryRun=All' * dry_run}"
        code, _ = await self.ask("helm", "POST", path, {"metadata": {"name": GUARD_UNINSTALL}})
        return code, self.clock.boottime() - begun

    async def remove(self, user, name="db-0", **options):
        """DELETEs a pod."""
        return await self.ask(user, "DELETE", f"/api/v1/namespaces/{SHOP}/pods/{name}", options or None)


def play_on_guarded_cluster(scene):
    """Runs ``scene(cluster)`` in virtual time."""

    async def play():
        cluster = GuardedCluster(virtual.VirtualClock())
        try:
            await cluster.begin()
            await scene(cluster)
        finally:
            await cluster.close()

    virtual.run(play())


def _serves(pod):
    conditions = (pod.get("status") or {}).get("conditions") or ()
    is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return is_ready and not pod["metadata"].get("deletionTimestamp")
