"""What the guard is asked about: a guarded namespace in a lab, and the reviews that an API server would send of it.

Twenty nodes, and a namespace of thirty pods: six that a GuardPolicy guards, five of them of a StatefulSet, and 24 that none
does. The
policy's provider is an address where nobody listens, so that what is held stays held.
"""

import asyncio
import base64
import contextlib
import datetime as dt
import json
from urllib.parse import urlsplit

from guard_load import UID
from lab_work import pod

from lastcall.adapters.kube.resources import (
    GUARD_POLICIES,
    NAMESPACES,
    NODES,
    PODS,
    STATEFUL_SETS,
    VALIDATING_WEBHOOKS,
)
from lastcall.errors import NotFound
from lastcall.manifests.guard import GuardChoices, guard_objects
from lastcall.manifests.guard_webhooks import CONFIGURATION
from lastcall.names import API_VERSION, GUARD_BYPASS_UNTIL, GUARD_ENABLED
from lastcall_lab.control_plane.create_objects import create_object

NAME = "bench-guard"
HELD, BYPASSED, FREE = "db-00000", "spare-00000", "web-00000"
"""The pod that is held, one whose deletion a person allows, and one that no policy guards."""
BYTES = 8192
"""Of a review's body."""

_NODES, _MEMBERS, _OTHERS = 20, 5, 24
_BY_HAND = ("Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service")
"""Of the manifests these are left out: the guard is no pod here."""
_PERSON = {"username": "ann", "uid": "ann", "groups": ["admins", "system:authenticated"]}


class Ground:
    """On one lab."""

    def __init__(self, client):
        self._client = client

    async def install(self):
        """The objects of ``lastcall manifests guard``, but for what runs in pods; then the namespace."""
        for obj in guard_objects(GuardChoices()):
            if obj["kind"] not in _BY_HAND:
                await create_object(self._client, obj)
        for number in range(_NODES):
            await self._client.create(NODES, {"metadata": {"name": f"node-{number:03d}"}})
        await self._client.create(NAMESPACES, {"metadata": {"name": NAME, "labels": {GUARD_ENABLED: "true"}}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAME}}
        await create_object(self._client, account)
        await self._make_policy()
        made = await self._client.create(STATEFUL_SETS, _stateful_set(), namespace=NAME)
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": made["metadata"]["uid"]}
        for number in range(_MEMBERS):
            await self._make_pod("db", number, ownerReferences=[owner | {"controller": True}])
        tomorrow = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
        await self._make_pod(
            "spare", 0, labels={"app": "db"}, notes={GUARD_BYPASS_UNTIL: f"{tomorrow:%Y-%m-%dT%H:%M:%SZ}"}
        )
        for number in range(_OTHERS):
            await self._make_pod("web", number)

    async def review(self, name):
        """The text of the review of a pod's DELETE, with ``UID`` for its uid."""
        found = await self._client.get(PODS, name, namespace=NAME)
        return _review(found)

    async def webhook(self):
        """Where kube-apiserver would ask: the name of the certificate, the path, and the authority (PEM).

        It is what the guard has written into its ValidatingWebhookConfiguration.
        """
        for _ in range(200):
            found = await self._client.get(VALIDATING_WEBHOOKS, CONFIGURATION)
            client = found["webhooks"][0]["clientConfig"]
            if "caBundle" in client:
                service = client["service"]
                name = f"{service['name']}.{service['namespace']}.svc"
                return name, urlsplit(service["path"]).path, base64.b64decode(client["caBundle"]).decode()
            await asyncio.sleep(0.05)
        raise RuntimeError("the guard has not written where it is")

    async def _make_policy(self):
        """Again until its kind is served."""
        about = {"apiVersion": API_VERSION, "kind": "GuardPolicy", "metadata": {"name": "db"}}
        spec = {"selector": {"matchLabels": {"app": "db"}}, "provider": {"http": {"port": 9}}}
        for _ in range(200):
            with contextlib.suppress(NotFound):
                await self._client.create(GUARD_POLICIES, about | {"spec": spec}, namespace=NAME)
                return
            await asyncio.sleep(0.05)
        raise RuntimeError("GuardPolicy is not served")

    async def _make_pod(self, app, number, *, notes=None, **metadata):
        made = pod(number, app)
        made["spec"]["nodeName"] = f"node-{number % _NODES:03d}"
        del made["spec"]["containers"][1:]  # a review of two would have more than ``BYTES``
        made["metadata"] |= {"labels": {"app": app}, **metadata}
        made["metadata"]["annotations"] |= notes or {}
        await self._client.create(PODS, made, namespace=NAME)
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"status": {"phase": "Running", "podIP": "127.0.0.1", "conditions": [ready]}}
        await self._client.patch(PODS, made["metadata"]["name"], status, namespace=NAME, subresource="status")


def _stateful_set():
    labels = {"app": "db"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": "db"}]}}
    spec = {"replicas": _MEMBERS, "serviceName": "db", "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "db"}, "spec": spec}


def _review(found):
    """As kube-apiserver sends it; one of the pod's notes is made longer until it has ``BYTES``."""
    whole = _whole(found)
    notes = found["metadata"]["annotations"]
    notes[min(notes)] += "x" * (BYTES - len(_text(whole)))
    text = _text(whole)
    assert len(text) == BYTES, f"the review of {found['metadata']['name']} has {len(text)} bytes"
    return text


def _whole(found):
    resource = {"group": "", "version": "v1", "resource": "pods"}
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    request = {
        "uid": UID,
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": found["metadata"]["name"],
        "namespace": NAME,
        "operation": "DELETE",
        "userInfo": _PERSON,
        "object": None,
        "oldObject": found,
        "dryRun": False,
        "options": {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Background"},
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _text(whole):
    return json.dumps(whole, separators=(",", ":"))


def each_differs(review):
    """The same review with another text of its pod each time: what stands for its uid is in the padding, too."""
    return review.replace("x" * len(UID), UID, 1)
