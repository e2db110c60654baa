"""Pods, as the lab's API server is asked for them, and a short way to ask it."""

import copy
import json
from random import Random

from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.kinds.pods import PodKind
from lastcall_lab.apiserver.values.request import ADMIN, Request, UserInfo

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


def kubelet(node):
    """Who a node's kubelet is."""
    return UserInfo(f"system:node:{node}", ("system:nodes", "system:authenticated"))


def pod(name="p", *, metadata=None, **spec):
    """A small pod, as a client sends it."""
    spec = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, **(metadata or {})}, "spec": spec}


def made(**more):
    """The same pod as it is stored; its service account is not asked for."""
    obj = pod(**more)
    obj["metadata"].update(namespace="default", uid="u")
    behaviour = PodKind()
    behaviour.default(obj)
    behaviour.prepare_create(obj)
    return obj


def changed(obj, **spec):
    """A copy with another spec, defaults included; None takes a field away."""
    new = copy.deepcopy(obj)
    new["spec"] = {name: value for name, value in {**new["spec"], **spec}.items() if value is not None}
    PodKind().default(new)
    return new


def said(causes):
    """What is wrong, as the message of an error says it."""
    return [f"{cause.field}: {cause.message}" for cause in causes]


class Api:
    """A new server in virtual time."""

    def __init__(self):
        self.clock = virtual.VirtualClock()
        self.server = ApiServer(self.clock, Random(1))

    async def ask(self, method, target, body=None, *, user=ADMIN, media="application/json"):
        """Status code and body."""
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": media, "user-agent": "test"}
        response = await self.server.handle(Request.of(method, target, headers=headers, body=data, user=user))
        self.warnings = response.headers.get("warning", [])
        return response.status, json.loads(response.body)

    async def good(self, method, target, body=None, **more):
        """The body of an answer that is a success."""
        code, answer = await self.ask(method, target, body, **more)
        assert code < 300, answer
        return answer

    async def refused(self, method, target, body=None, **more):
        """Code, reason and message of an answer that is none."""
        code, answer = await self.ask(method, target, body, **more)
        assert code >= 400, answer
        return code, answer.get("reason", ""), answer["message"]

    async def account(self, namespace="default", **more):
        """The service account of a namespace."""
        account = {"metadata": {"name": "default"}, "automountServiceAccountToken": False, **more}
        await self.good("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account)


def with_api(scenario):
    """Runs ``scenario(api)`` in virtual time on a server with a service account in its namespace ``default``."""

    def test():
        async def run():
            api = Api()
            await api.account()
            await scenario(api)

        virtual.run(run())

    test.__doc__, test.__name__ = scenario.__doc__, scenario.__name__
    return test


def container(**more):
    """A container, with what a test says of it."""
    return {"name": "c", "image": "i", **more}
