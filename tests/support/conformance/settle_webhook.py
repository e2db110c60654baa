"""The guard's webhook for new pods, put into force in a case's namespace, at whatever API server the case asks."""

import json
from dataclasses import dataclass, field

from support.conformance.api_client import unique

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.pod_surroundings import KubePodSurroundings
from lastcall.guard.controller.pod_creation_service import PodCreationService
from lastcall.manifests.settle_webhook import settle_webhook_configuration

PATIENCE = 25
"""Seconds that the answer may take on a busy machine."""


@dataclass
class SettleWebhook:
    """Seven seconds where nothing else is said."""

    api: object
    hooks: object
    answers: list = field(default_factory=list)
    """What was answered, as AdmissionReviews."""

    async def put(self):
        """In force, once more each time."""
        surroundings = KubePodSurroundings(Client(self.api.transport), SystemClock())
        service = PodCreationService(surroundings, default=7, limit=PATIENCE)

        async def answer(request):
            review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
            self.answers.append(await service.answer(json.dumps(review).encode()))
            return {"raw": json.dumps(self.answers[-1]).encode()}

        name = unique("settle")
        [webhook] = settle_webhook_configuration({})["webhooks"]
        await self.hooks.answer(self._narrow(name, webhook), mutating=True, **{name: answer})

    def _narrow(self, name, webhook):
        """As it is in the manifests, but for this namespace alone, and so that a failure is seen."""
        said = self.hooks.said(name)
        namespaces = {**said["namespaceSelector"], **webhook["namespaceSelector"]}
        here = {"name": said["name"], "clientConfig": said["clientConfig"], "namespaceSelector": namespaces}
        return {**webhook, **here, "failurePolicy": "Fail", "timeoutSeconds": PATIENCE + 5}
