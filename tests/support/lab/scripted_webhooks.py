"""A lab's API server whose admission webhooks answer what a test says."""

import asyncio
import json
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import CONFIG_MAPS, MUTATING_WEBHOOKS
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.admission.webhook_client import WebhookReply
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import ADMIN

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}


class Hooks:
    """Webhooks by the path of their URL; each answers a request with parts of a response, or raises."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    async def call(self, destination, body):
        request = json.loads(body)["request"]
        name = destination.url.rpartition("/")[2].partition("?")[0]
        self.asked.append((name, request))
        answer = self.answers[name]
        answer = await answer(request) if asyncio.iscoroutinefunction(answer) else answer
        if isinstance(answer, WebhookReply):
            return answer
        response = {"uid": request["uid"], "allowed": True, **answer}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return WebhookReply(200, "application/json", json.dumps(review).encode())

    @property
    def names(self):
        return [name for name, _ in self.asked]


def hook(name, **rest):
    """One of a configuration; ``rest`` replaces its fields."""
    return {
        "name": f"{name}.example.com",
        "clientConfig": {"url": f"https://hooks.example/{name}"},
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **rest,
    }


class World:
    """The server, and a client of it who may do all."""

    def __init__(self, hooks, clock=None):
        self.server = ApiServer(clock or virtual.VirtualClock(), Random(1))
        self.server.webhooks.caller = self.hooks = hooks
        self.client = Client(InProcessTransport(self.server, ADMIN))

    async def configure(self, resource, *hooks, name="hooks"):
        """Makes a configuration of these."""
        kind = {MUTATING_WEBHOOKS: "MutatingWebhookConfiguration"}.get(resource, "ValidatingWebhookConfiguration")
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
        await self.client.create(resource, {**body, "webhooks": list(hooks)})

    async def write(self, name="a", **rest):
        """A ConfigMap, for the webhooks to see."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}
        return await self.client.create(CONFIG_MAPS, body, namespace="default", **rest)
