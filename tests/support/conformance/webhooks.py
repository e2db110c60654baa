"""Admission webhooks that a case answers itself, over HTTPS at an address that the API server can reach."""

import asyncio
import base64
import inspect
import json
import socket
from dataclasses import dataclass, field

import pytest
from support.conformance.api_client import SECONDS, unique
from support.conformance.objects import config_map

from lastcall.adapters.kube.resources import CONFIG_MAPS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from lastcall_lab.apiserver.values.request import Response

REACHED_SECONDS = 5.0
"""How long a cluster may take to learn of a new configuration."""


def address_towards(host, port):
    """This machine's address as that server sees it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
        towards.connect((host, port))
        return towards.getsockname()[0]


class Answers:
    """Answers reviews by the last part of the path; what nobody has said is allowed.

    A GET, which only a redirection leads to, is noted with its method.
    """

    def __init__(self):
        self.by_name, self.reviews = {}, []

    async def handle(self, request):
        """A front's handler."""
        name = request.path.rpartition("/")[2]
        review = json.loads(request.body)["request"] if request.body else {"uid": "", "method": request.method}
        self.reviews.append((name, review))
        answer = self.by_name.get(name, {})
        answer = answer(review) if callable(answer) else answer
        answer = await answer if inspect.isawaitable(answer) else answer
        if "sleep" in answer:
            await asyncio.sleep(answer["sleep"])
        if "raw" in answer:
            headers = {"content-type": "application/json", **answer.get("headers", {})}
            return Response(answer.get("status", 200), headers, answer["raw"])
        response = {"uid": review["uid"], "allowed": True, **{k: v for k, v in answer.items() if k != "sleep"}}
        said = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return Response(200, {"content-type": "application/json"}, json.dumps(said).encode())


@dataclass
class Hooks:
    """The webhooks of one case, all of them for its namespace alone."""

    api: object
    url: str
    authority: str
    answers: Answers
    names: list = field(default_factory=list)

    def reviews(self, name):
        """What a webhook was asked in this case."""
        asked = [review for asked, review in self.answers.reviews if asked == self.paths[name]]
        return asked if name == "probe" else [review for review in asked if not _probing(review)]

    @property
    def paths(self):
        """The path of each webhook is its own in this case."""
        return {name: f"{self.api.namespace}-{name}" for name in self.names}

    def said(self, name, operations=("CREATE",), resources=("configmaps",), group="", **more):
        """One webhook of a configuration."""
        if name not in self.names:
            self.names.append(name)
        rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": [*resources]}
        bundle = base64.b64encode(self.authority.encode()).decode()
        return {
            "name": f"{name}.conformance.example.com",
            "clientConfig": {"url": f"{self.url}/{self.paths[name]}", "caBundle": bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.api.namespace}},
            "timeoutSeconds": 5,
            **more,
        }

    async def answer(self, *hooks, mutating=False, **answers):
        """Registers webhooks, with answers by their names, and waits until the API server asks them."""
        for name, answer in answers.items():
            self.answers.by_name[f"{self.api.namespace}-{name}"] = answer
        mark = unique("probe")
        probe = self.said("probe", objectSelector={"matchLabels": {"probe": mark}})
        resource = MUTATING_WEBHOOKS if mutating else VALIDATING_WEBHOOKS
        name = unique("hooks")
        await self.api.create(resource, {"metadata": {"name": name}, "webhooks": [probe, *hooks]})
        asked = len(self.reviews("probe"))
        body = config_map(unique("probe"), labels={"probe": mark})
        try:
            async with asyncio.timeout(REACHED_SECONDS if self.api.target == "kubeconfig" else SECONDS):
                while len(self.reviews("probe")) == asked:
                    await self.api.create(CONFIG_MAPS, body, dryRun="All").reply()
                    await asyncio.sleep(0.02)
        except TimeoutError:
            assert self.api.target == "kubeconfig", "the lab does not ask its webhooks"
            pytest.skip(f"the API server does not reach the webhooks of this test at {self.url}")
        return name


def _probing(review):
    return "probe" in ((review.get("object") or {}).get("metadata", {}).get("labels") or {})


def deny(message="no", **status):
    """A refusal."""
    return {"allowed": False, "status": {"message": message, **status}}


def patched(*operations):
    """A change."""
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}
