"""A namespace with guarded pods at the lab's API server, in virtual time, and the guard's view of it."""

import json
from datetime import UTC, datetime

from support.lab.virtual_server import Asked

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.guard_facts import KubeGuardFacts
from lastcall.adapters.kube.guard_records import KubeGuardRecords
from lastcall.errors import Unavailable
from lastcall.model.admission import parse_review
from lastcall.model.guard_policy import HeldPod, PreparationState
from lastcall_lab import virtual
from lastcall_lab.apiserver.server.in_process import InProcessTransport

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "guardpolicies.lastcall.dev"},
    "spec": {
        "group": "lastcall.dev",
        "scope": "Namespaced",
        "names": {"plural": "guardpolicies", "kind": "GuardPolicy"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
POLICIES = "/apis/lastcall.dev/v1alpha1/namespaces/shop/guardpolicies"
WHEN = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)


class CountedTransport(InProcessTransport):
    """Counts what is asked; ``fails`` names paths that are not answered."""

    def __init__(self, server):
        super().__init__(server)
        self.asked, self.fails = [], ()

    async def request(self, method, target, headers, body, *, stream=False):
        path = target.partition("?")[0]
        self.asked.append(f"{method} {path.rpartition('/')[2]}")
        if any(path.endswith(one) for one in self.fails):
            raise Unavailable("no answer")
        return await super().request(method, target, headers, body, stream=stream)


class Shop:
    """A namespace with a StatefulSet of two pods, and a policy."""

    def __init__(self):
        self.clock = virtual.VirtualClock()
        self.server = Asked(self.clock)
        self.transport = CountedTransport(self.server)
        self.client = Client(self.transport)
        self.facts = KubeGuardFacts(self.client, self.clock)
        self.records = KubeGuardRecords(self.client)

    async def fill(self):
        good = self.server.good
        await good("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        await self.clock.sleep(10)
        await good(
            "POST",
            "/api/v1/namespaces",
            {"metadata": {"name": "shop", "labels": {"lastcall.dev/guard-enabled": "true"}}},
        )
        await good("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
        await good("POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "default"}})
        template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
        spec = {"selector": {"matchLabels": {"app": "db"}}, "serviceName": "db", "template": template, "replicas": 2}
        self.set = await good(
            "POST", "/apis/apps/v1/namespaces/shop/statefulsets", {"metadata": {"name": "db"}, "spec": spec}
        )
        self.pods = [await self.make_pod(f"db-{number}", "apps/v1", "StatefulSet", self.set) for number in range(2)]
        policy = {
            "apiVersion": "lastcall.dev/v1alpha1",
            "kind": "GuardPolicy",
            "metadata": {"name": "db"},
            "spec": {"selector": {"matchLabels": {"app": "db"}}, "provider": {"http": {}}},
        }
        await good("POST", POLICIES, policy)
        return self

    async def make_pod(self, name, version, kind, owner):
        reference = {"apiVersion": version, "kind": kind, "controller": True}
        reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        pod = {
            "metadata": {"name": name, "labels": {"app": "db"}, "ownerReferences": [reference]},
            "spec": {"nodeName": "n1", "containers": [{"name": "a", "image": "b"}]},
        }
        return await self.server.good("POST", "/api/v1/namespaces/shop/pods", pod)

    async def policy(self):
        return (await self.facts.read_namespace_facts("shop")).policies[0]


def in_shop(test):
    """Runs the test in virtual time."""

    def run(**arguments):
        async def main():
            await test(await Shop().fill(), **arguments)

        virtual.run(main())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def removal(review):
    return parse_review(json.dumps(review).encode(), "review").removal


def entry(uid, **fields):
    return HeldPod(name="db-0", uid=uid, state=PreparationState.PREPARING, since=WHEN, **fields)
