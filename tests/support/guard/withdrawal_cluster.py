"""The lab's API server with the guard's Service and webhooks, guards that answer or not, and the controller's watchdog."""

import asyncio
import base64
import json
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import ENDPOINT_SLICES, NAMESPACES, SERVICES, VALIDATING_WEBHOOKS
from lastcall.adapters.webhook.guard_webhooks import KubeGuardWebhooks
from lastcall.adapters.webhook.webhook_configuration import WebhookConfiguration
from lastcall.aio import cancel_and_wait
from lastcall.errors import NotFound
from lastcall.guard.controller.withdrawal_controller import WithdrawalController
from lastcall.manifests import controller, guard, guard_webhooks
from lastcall.manifests.guard_grants import NAME as GUARD
from lastcall.manifests.labels import NAME as CONTROLLER
from lastcall.names import SYSTEM_NAMESPACE
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.admission.webhook_client import WebhookReply, WebhookUnreachable
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import ADMIN, Request
from lastcall_lab.control_plane.create_objects import create_object
from lastcall_lab.control_plane.identities import service_account_identity
from lastcall_lab.virtual import VirtualClock

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CONFIGURATION = f"{CONFIGURATIONS}/lastcall-guard"
CONTROLLER_USER = service_account_identity(SYSTEM_NAMESPACE, CONTROLLER)
RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
APPLY = "application/apply-patch+yaml"


class SuspendedClock(VirtualClock):
    """A process that was suspended for ``lost`` seconds, of which its sleeps know nothing."""

    lost = 0.0

    def boottime(self):
        return super().boottime() + self.lost


class GuardReplicas:
    """The webhook's side: refuses every deletion, as a guard whose applications never are ready."""

    def __init__(self):
        self.authorities, self.token = "pem", "token"
        self.asked = 0

    async def call(self, destination, body):
        self.asked += 1
        if destination.bundle != self.authorities:
            raise WebhookUnreachable("tls: failed to verify certificate: x509: certificate signed by unknown authority")
        if f"/review/{self.token}?" not in destination.url:
            return WebhookReply(404, "text/plain", b"not here\n")
        status = {"code": 429, "reason": "TooManyRequests", "message": "held"}
        response = {"uid": json.loads(body)["request"]["uid"], "allowed": False, "status": status}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return WebhookReply(200, "application/json", json.dumps(review).encode())


class TroubledTransport(InProcessTransport):
    """``trouble`` is called with verb and path before each request, and may raise or wait."""

    trouble = None

    async def request(self, method, target, headers, body, *, stream=False):
        if self.trouble:
            await self.trouble(method, target)
        return await super().request(method, target, headers, body, stream=stream)


class WithdrawalCluster:
    """``start`` installs the controller, and the guard with ``failure_policy``; no replica of it is ready yet."""

    def __init__(self, *, failure_policy="Fail"):
        self.clock = SuspendedClock()
        self.server = ApiServer(self.clock, Random(1), authorization=AuthorizationMode.RBAC)
        self.guards = self.server.webhooks.caller = GuardReplicas()
        self.admin = Client(InProcessTransport(self.server, ADMIN))
        self.transport = TroubledTransport(self.server, CONTROLLER_USER)
        self.configuration = WebhookConfiguration(
            self._client_of(GUARD), VALIDATING_WEBHOOKS, guard_webhooks.CONFIGURATION, path=guard_webhooks.PATH
        )
        self.choices = guard.GuardChoices(failure_policy=failure_policy)
        self.leader = self.watchdog = None

    def _client_of(self, name):
        return Client(InProcessTransport(self.server, service_account_identity(SYSTEM_NAMESPACE, name)), manager=name)

    async def start(self):
        rights = [*controller.controller_objects(controller.ControllerChoices()), *guard.guard_objects(self.choices)]
        for obj in rights:
            if obj["kind"] in RIGHTS:
                await create_object(self.admin, obj)
        await self.create(NAMESPACES, {"metadata": {"name": "shop", "labels": {"lastcall.dev/guard-enabled": "true"}}})
        await self.ask("POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "default"}})
        pod = {"metadata": {"name": "db-0"}, "spec": {"nodeName": "n1", "containers": [{"name": "a", "image": "b"}]}}
        code, said = await self.ask("POST", "/api/v1/namespaces/shop/pods", pod)
        assert code == 201, said
        return self

    async def create(self, resource, obj, namespace=""):
        return await self.admin.create(resource, obj, namespace=namespace)

    async def ask(self, method, target, body=None, kind="application/json"):
        """Code and answer, as the administrator."""
        data = json.dumps(body).encode() if body is not None else b""
        request = Request.of(method, target, body=data, headers={"content-type": kind}, user=ADMIN)
        response = await self.server.handle(request)
        return response.status, json.loads(response.body)

    # -- the guard -----------------------------------------------------------------------------------------------------

    @property
    def manifests(self):
        """The Service and the configuration of the guard."""
        objects = guard.guard_objects(self.choices)
        kinds = "Service", "ValidatingWebhookConfiguration"
        return [one for one in objects if one["kind"] in kinds and one["metadata"]["name"] == GUARD]

    async def install(self, *, ready=2):
        """As ``kubectl apply`` and then the guard itself."""
        service, configuration = self.manifests
        await self.create(SERVICES, service, SYSTEM_NAMESPACE)
        if ready:
            await self.set_ready(ready)
        await self.apply(configuration)
        if ready:
            await self.ensure()

    async def apply(self, configuration, manager="helm"):
        """Server-side, without force."""
        code, said = await self.ask("PATCH", f"{CONFIGURATION}?fieldManager={manager}", configuration, APPLY)
        assert code in (200, 201), said

    async def ensure(self):
        """What each replica of the guard does from time to time."""
        assert await self.configuration.ensure(authorities=self.guards.authorities, token=self.guards.token)

    async def set_ready(self, number):
        """So many of two replicas are ready."""
        endpoints = [
            {"addresses": [f"10.0.0.{one}"], "conditions": {"ready": one < number}, "nodeName": f"n{one}"}
            for one in range(2)
        ]
        labels = {"kubernetes.io/service-name": "lastcall-guard"}
        ports = [{"name": "webhook", "port": 9443, "protocol": "TCP"}]
        wanted = {
            "metadata": {"name": "lastcall-guard-x", "labels": labels},
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": ports,
        }
        try:
            await self.admin.get(ENDPOINT_SLICES, "lastcall-guard-x", namespace=SYSTEM_NAMESPACE)
        except NotFound:
            await self.create(ENDPOINT_SLICES, wanted, SYSTEM_NAMESPACE)
        else:
            await self.admin.patch(
                ENDPOINT_SLICES, "lastcall-guard-x", {"endpoints": endpoints}, namespace=SYSTEM_NAMESPACE
            )

    async def stored(self):
        """The configuration."""
        return await self.admin.get(VALIDATING_WEBHOOKS, "lastcall-guard")

    async def try_delete(self, name="db-0"):
        """Code and message of the deletion of a guarded pod, which is not carried out."""
        code, said = await self.ask("DELETE", f"/api/v1/namespaces/shop/pods/{name}?dryRun=All")
        return code, said.get("message", "")

    # -- the controller ------------------------------------------------------------------------------------------------

    async def lead(self, after=60.0):
        """Another controller leads."""
        await self.close()
        client = Client(self.transport, manager="lastcall-controller")
        webhooks = KubeGuardWebhooks(client, self.clock, component="lastcall-controller", instance="c-1")
        self.watchdog = WithdrawalController(webhooks, self.clock, after=after)
        self.leader = asyncio.ensure_future(self.watchdog.run())

    async def sleep(self, seconds):
        await self.clock.sleep(seconds)

    async def close(self):
        if self.leader:
            await cancel_and_wait(self.leader)

    async def events(self):
        """Type and reason of the events about the configuration, in order."""
        _, found = await self.ask("GET", "/api/v1/namespaces/default/events")
        about = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
        about |= {"name": "lastcall-guard", "uid": (await self.stored())["metadata"]["uid"]}
        ours = [one for one in found["items"] if one["involvedObject"] == about]
        ours.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
        return [(one["type"], one["reason"]) for one in ours]

    def bundle(self):
        """The authority as the configuration has it."""
        return base64.b64encode(self.guards.authorities.encode()).decode()
