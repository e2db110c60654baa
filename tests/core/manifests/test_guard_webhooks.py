"""Which deletions the API server shows to the guard, by the ValidatingWebhookConfiguration, at the lab's API server."""

import json
from copy import deepcopy
from random import Random

import pytest
from support.conformance.api_client import unique
from support.lab.scripted_webhooks import Hooks
from support.virtual_time.worker import in_virtual_time

from lastcall.manifests.guard_policy_definition import guard_policy_definition
from lastcall.manifests.guard_webhooks import FAIL, guard_webhook_configuration, url_client
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.admission.webhook_client import WebhookUnreachable
from lastcall_lab.apiserver.values.request import ADMIN, Request, UserInfo

KUBELET = UserInfo("system:node:n1", groups=("system:nodes", "system:masters"))
HOLD = {"allowed": False, "status": {"code": 429, "reason": "TooManyRequests", "message": "held"}}
POLICIES = "/apis/lastcall.dev/v1alpha1/namespaces/shop/guardpolicies"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Cluster:
    """A lab's API server that asks a scripted guard."""

    def __init__(self, answer=None, **configuration):
        self.server = ApiServer(virtual.VirtualClock(), Random(1))
        self.hooks = Hooks(review=answer or HOLD)
        self.server.webhooks.caller = self.hooks
        self.configuration = guard_webhook_configuration(url_client("https://guard.example/review"), **configuration)

    async def start(self, namespace="shop", enabled="true"):
        await self.ask(
            "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", self.configuration
        )
        labels = {"lastcall.dev/guard-enabled": enabled} if enabled else {}
        await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace, "labels": labels}})
        await self.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
        return self

    async def ask(self, method, target, body=None, user=ADMIN, kind="application/json"):
        data = json.dumps(body).encode() if body is not None else b""
        response = await self.server.handle(
            Request.of(method, target, body=data, headers={"content-type": kind}, user=user)
        )
        return response.status, json.loads(response.body)

    async def make_pod(self, name="db-0", namespace="shop", phase="Running"):
        pod = {"metadata": {"name": name}, "spec": {"nodeName": "n1", "containers": [{"name": "a", "image": "b"}]}}
        code, made = await self.ask("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
        assert code == 201, made
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        await self.ask("PATCH", f"{path}/status", {"status": {"phase": phase}}, kind="application/merge-patch+json")
        return path

    def asked(self):
        return [(one["operation"], one.get("subResource", "")) for _, one in self.hooks.asked]


def eviction(**options):
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "db-0"}, "deleteOptions": options}


@in_virtual_time
async def test_a_deletion_and_an_eviction_are_shown_and_refused_with_429():
    cluster = await Cluster().start()
    path = await cluster.make_pod()
    code, said = await cluster.ask("DELETE", path)
    assert (code, said["reason"]) == (429, "TooManyRequests")
    assert said["message"] == 'admission webhook "delete.guard.lastcall.dev" denied the request: held'
    code, said = await cluster.ask("POST", f"{path}/eviction", eviction())
    assert (code, said["reason"]) == (429, "TooManyRequests")
    assert cluster.asked() == [("DELETE", ""), ("CREATE", "eviction")]


@in_virtual_time
async def test_an_eviction_of_the_old_version_is_shown_as_one_of_the_new_and_refused():
    """The resource is pods of v1 whatever the version of the Eviction, so one rule matches both."""
    cluster = await Cluster().start()
    path = await cluster.make_pod()
    code, said = await cluster.ask("POST", f"{path}/eviction", eviction() | {"apiVersion": "policy/v1beta1"})
    assert (code, said["reason"]) == (429, "TooManyRequests")
    [(_, request)] = cluster.hooks.asked
    assert request["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert request["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_goes_though_no_guard_answers(phase):
    @in_virtual_time
    async def check():
        cluster = await Cluster(unreachable, failure_policy=FAIL).start()
        path = await cluster.make_pod(phase=phase)
        assert (await cluster.ask("DELETE", path))[0] == 200
        assert cluster.asked() == []

    check()


async def unreachable(_):
    raise WebhookUnreachable("connection refused")


@in_virtual_time
async def test_a_terminating_pod_and_a_kubelet_s_request_go_though_no_guard_answers():
    cluster = await Cluster({"allowed": True}, failure_policy=FAIL).start()
    path = await cluster.make_pod()
    await cluster.ask("DELETE", path, {"gracePeriodSeconds": 60})
    cluster.hooks.answers["review"] = unreachable
    assert (await cluster.ask("DELETE", path, {"gracePeriodSeconds": 0}))[0] == 200
    path = await cluster.make_pod("db-1")
    assert (await cluster.ask("DELETE", path, user=KUBELET))[0] == 200
    assert len(cluster.asked()) == 1


@pytest.mark.parametrize(("failure_policy", "expected"), [("Ignore", 200), ("Fail", 500)])
def test_what_becomes_of_a_deletion_while_no_guard_answers(failure_policy, expected):
    @in_virtual_time
    async def check():
        cluster = await Cluster(unreachable, failure_policy=failure_policy).start()
        assert (await cluster.ask("DELETE", await cluster.make_pod()))[0] == expected

    check()


@pytest.mark.parametrize(
    ("namespace", "enabled"), [("shop", ""), ("shop", "false"), ("kube-system", "true"), ("lastcall-system", "true")]
)
def test_other_namespaces_are_not_shown(namespace, enabled):
    @in_virtual_time
    async def check():
        cluster = await Cluster(unreachable, failure_policy=FAIL).start(namespace, enabled)
        assert (await cluster.ask("DELETE", await cluster.make_pod(namespace=namespace)))[0] == 200

    check()


@in_virtual_time
async def test_a_dry_run_is_shown_as_one():
    cluster = await Cluster().start()
    path = await cluster.make_pod()
    await cluster.ask("DELETE", f"{path}?dryRun=All")
    await cluster.ask("POST", f"{path}/eviction", eviction(dryRun=["All"]))
    first, second = (one for _, one in cluster.hooks.asked)
    assert first["dryRun"]
    assert second["object"]["deleteOptions"]["dryRun"] == ["All"]


@in_virtual_time
async def test_each_pod_of_a_collection_is_shown():
    cluster = await Cluster().start()
    for number in range(3):
        await cluster.make_pod(f"db-{number}")
    await cluster.ask("DELETE", "/api/v1/namespaces/shop/pods")
    assert {one["oldObject"]["metadata"]["name"] for _, one in cluster.hooks.asked} <= {"db-0", "db-1", "db-2"}
    assert cluster.hooks.asked


# -- GuardPolicy -------------------------------------------------------------------------------------------------------

GOOD = {"selector": {"matchLabels": {"app": "db"}}, "provider": {"redis": {"port": 6379}}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"maxUnavailable": 2, "groupBy": "example.com/cluster", "holdLimit": "30m", "onLimit": "Allow"}, ""),
        ({"maxUnavailable": "25%"}, ""),
        ({"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, ""),
        ({"maxUnavailable": 0}, "must be a number from 1, or a percentage from 1%"),
        ({"maxUnavailable": "0%"}, "must be a number from 1, or a percentage from 1%"),
        ({"maxUnavailable": "x"}, "must be a number from 1, or a percentage from 1%"),
        ({"provider": {}}, "at least 1"),
        ({"provider": {"redis": {}, "http": {}}}, "at most 1"),
        ({"holdLimit": "soon"}, "should match"),
        ({"onLimit": "Kill"}, "supported values"),
        ({"groupBy": "a b"}, "should match"),
        ({"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}, "at least one must be given"),
        ({"holdLimits": "30m"}, "unknown field"),
    ],
)
def test_a_policy_is_checked_when_it_is_written(change, words):
    @in_virtual_time
    async def check():
        cluster = await Cluster().start()
        code, said = await cluster.ask("POST", DEFINITIONS, guard_policy_definition())
        assert code == 201, said
        await virtual.VirtualClock().sleep(10)
        policy = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": unique("p")}}
        body = policy | {"spec": deepcopy(GOOD) | change}
        code, said = await cluster.ask("POST", f"{POLICIES}?fieldValidation=Strict", body)
        assert (code == 201) is (not words), said
        assert words in said.get("message", ""), said["message"]
        if not words:
            assert said["spec"]["provider"] == GOOD["provider"]
            assert said["spec"]["onUnreachable"] == "Hold"

    check()
