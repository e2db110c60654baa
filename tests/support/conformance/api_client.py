"""Asks an API server, whichever it is, and shows everything that it answers: the client of the conformance suite."""

import asyncio
import base64
import contextlib
import itertools
import json
import secrets
from dataclasses import dataclass, field
from urllib.parse import urlencode

import yaml

from lastcall.adapters.kube.client import JSON_PATCH, MERGE, STRATEGIC
from lastcall.adapters.kube.resources import NAMESPACES, PODS, dict_resource

APPLY = "application/apply-patch+yaml"
JSON = "application/json"
SECONDS = 60.0
"""How long something may take that a server does by and by."""

SERVICE_ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
__all__ = ["APPLY", "JSON", "JSON_PATCH", "MERGE", "STRATEGIC", "Api", "Reply", "unique"]

INVALID, REQUIRED, UNSUPPORTED = "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported"
FORBIDDEN, DUPLICATE, MISSING = "FieldValueForbidden", "FieldValueDuplicate", "FieldValueNotFound"
"""Reasons of causes."""

_numbers = itertools.count(1)
_run = secrets.token_hex(3)


def unique(prefix="c"):
    """A name that no other case has, nor another run."""
    return f"{prefix}-{_run}-{next(_numbers)}"


@dataclass(frozen=True)
class Reply:
    """One answer; ``body`` is the object that it holds, or text; ``data`` are its bytes."""

    status: int
    headers: dict
    data: bytes
    what: str = ""

    @property
    def body(self):
        kind = self.headers.get("content-type", "")
        if "json" in kind:
            return json.loads(self.data) if self.data else None
        return yaml.safe_load(self.data) if "yaml" in kind else self.data.decode(errors="replace")

    @property
    def warnings(self):
        """The texts of the Warning headers."""
        return [part for part in self.headers.get("warning", "").split('"')[1::2] if part]

    def good(self):
        """The body of a success."""
        assert self.status < 300, f"{self.what}: {self.status} {self.data[:600].decode(errors='replace')}"
        return self.body

    def refused(self, code, reason=""):
        """The Status of this refusal."""
        assert self.status == code, f"{self.what}: {self.status} instead of {code}: {self.data[:600].decode()}"
        said = self.body
        assert (said["kind"], said["apiVersion"], said["status"], said["code"]) == ("Status", "v1", "Failure", code)
        assert said.get("reason", "") == reason, f"{self.what}: reason {said.get('reason')!r}: {said['message']}"
        return said


class Call:
    """A request to be made: awaited, it must succeed and gives its object."""

    def __init__(self, ask):
        self._ask = ask

    def __await__(self):
        return self.good().__await__()

    async def good(self):
        """The object that a success holds."""
        return (await self._ask()).good()

    async def refused(self, code, reason=""):
        """The Status of a refusal that must be this one."""
        return (await self._ask()).refused(code, reason)

    async def reply(self):
        """Whatever is answered."""
        return await self._ask()


@dataclass
class Api:
    """An API server as one case sees it; ``namespace`` is the case's own."""

    transport: object
    target: str
    namespace: str = ""
    doomed: list = field(default_factory=list)

    # -- a case's beginning and end ------------------------------------------------------------------------------------

    async def begin(self):
        """Makes the namespace, with the service account that pods need (a controller may be quicker)."""
        self.namespace = unique()
        await self.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        account = {"metadata": {"name": "default"}}
        reply = await self.create(SERVICE_ACCOUNTS, account).reply()
        assert reply.status in (201, 409), reply

    async def end(self):
        """Removes what the case has made, whatever state it is in."""
        for path in reversed(self.doomed):
            free = {"metadata": {"finalizers": None}}
            await self.ask("PATCH", path, free, kind=MERGE).reply()
            if "/namespaces/" not in path:
                await self.ask("DELETE", path).reply()
        await self.ask("DELETE", self.at(PODS), {"gracePeriodSeconds": 0}).reply()
        await self.ask("DELETE", NAMESPACES.path(name=self.namespace)).reply()

    # -- paths ---------------------------------------------------------------------------------------------------------

    def at(self, resource, name="", sub=""):
        """The path of a collection, an object or its subresource; namespaced ones are in the case's namespace."""
        return resource.path("" if resource.plural in CLUSTER_WIDE else self.namespace, name, sub)

    # -- verbs ---------------------------------------------------------------------------------------------------------

    def ask(self, method, path, body=None, *, kind=JSON, accept=JSON, headers=None, **query):
        """Any request; a body that is bytes goes as it is."""
        target = f"{path}?{urlencode(query, doseq=True)}" if query else path
        said = {"accept": accept, "user-agent": "conformance", **(headers or {})}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        if body is not None and kind:
            said["content-type"] = kind

        async def asked():
            answer = await self.transport.request(method, target, said, data)
            return Reply(answer.status, dict(answer.headers), answer.body, f"{method} {target}")

        return Call(asked)

    def create(self, resource, obj, **query):
        """A new object. What is not in a namespace, or has finalizers, is removed when the case ends."""
        metadata = obj.get("metadata", {})
        if "name" in metadata and (resource.plural in CLUSTER_WIDE or metadata.get("finalizers")):
            self.doomed.append(self.at(resource, metadata["name"]))
        return self.ask("POST", self.at(resource), obj, **query)

    def get(self, resource, name, sub="", **query):
        """One object."""
        return self.ask("GET", self.at(resource, name, sub), **query)

    def list(self, resource, **query):
        """A list."""
        return self.ask("GET", self.at(resource), **query)

    def update(self, resource, obj, sub="", **query):
        """A PUT."""
        return self.ask("PUT", self.at(resource, obj["metadata"]["name"], sub), obj, **query)

    def patch(self, resource, name, patch, kind=MERGE, sub="", **query):
        """A PATCH."""
        return self.ask("PATCH", self.at(resource, name, sub), patch, kind=kind, **query)

    def apply(self, resource, name, obj, manager="m1", sub="", **query):
        """A server-side apply."""
        return self.patch(resource, name, obj, kind=APPLY, sub=sub, fieldManager=manager, **query)

    def delete(self, resource, name, options=None, **query):
        """A DELETE."""
        return self.ask("DELETE", self.at(resource, name), options, **query)

    # -- watches -------------------------------------------------------------------------------------------------------

    def watch(self, resource, *, accept=JSON, **query):
        """The events of a watch, as they come."""
        return self.stream(self.at(resource), accept=accept, **{"watch": "true", "timeoutSeconds": "60", **query})

    @contextlib.asynccontextmanager
    async def stream(self, path, *, accept=JSON, **query):
        """What comes from a path for as long as it is listened to."""
        target = f"{path}?{urlencode(query)}"
        answer = await self.transport.request("GET", target, {"accept": accept}, b"", stream=True)
        assert answer.status == 200, answer
        try:
            yield Events(answer.body)
        finally:
            await answer.body.aclose()

    # -- short ways ----------------------------------------------------------------------------------------------------

    async def names(self, resource, **query):
        """The names in a list, in its order."""
        return [item["metadata"]["name"] for item in (await self.list(resource, **query))["items"]]

    async def gone(self, resource, name):
        """Whether there is no such object."""
        return (await self.get(resource, name).reply()).status == 404

    async def until(self, found):
        """What ``found`` returns, as soon as it is true."""
        async with asyncio.timeout(SECONDS):
            while not (result := await found()):
                await asyncio.sleep(0.02)
            return result


CLUSTER_WIDE = {
    *("nodes", "namespaces", "persistentvolumes", "storageclasses", "volumeattachments", "csinodes", "csidrivers"),
    *("priorityclasses", "customresourcedefinitions", "validatingwebhookconfigurations"),
    *("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
    *("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
    *("mutatingwebhookconfigurations", "clusterroles", "clusterrolebindings", "tokenreviews", "subjectaccessreviews"),
    *("selfsubjectaccessreviews", "selfsubjectreviews", "selfsubjectrulesreviews", "componentstatuses"),
}
"""Plurals of resources that are in no namespace."""


class Events:
    """A stream of events; ``next`` waits for one."""

    def __init__(self, chunks):
        self._chunks = chunks
        self._rest = b""
        self._lines = []

    async def next(self):
        """The next one, bookmarks included; None at the end of the stream."""
        async with asyncio.timeout(SECONDS):
            while not self._lines:
                chunk = await anext(self._chunks, None)
                if chunk is None:
                    return None
                *self._lines, self._rest = (self._rest + chunk).split(b"\n")
            return json.loads(self._lines.pop(0))

    async def names(self, number):
        """Type and object's name of the next so many that are no bookmarks."""
        found = []
        while len(found) < number:
            event = await self.next()
            assert event, f"the stream ended after {found}"
            if event["type"] != "BOOKMARK":
                found.append((event["type"], event["object"]["metadata"]["name"]))
        return found


def causes(status):
    """Reason and field of each cause of a Status."""
    return [(cause.get("reason"), cause.get("field")) for cause in status["details"]["causes"]]


def b64(text):
    """As the data of a Secret is written."""
    return base64.b64encode(text.encode()).decode()
