"""Admission webhooks: who is asked, in which order, and what their answers do. Recorded cases tell the rest."""

import asyncio
import base64
import json
from random import Random

import pytest
from support.lab_front import serving
from support.virtual import in_virtual_time

from lastcall import errors
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import (
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    SERVICES,
    VALIDATING_WEBHOOKS,
)
from lastcall.lab import virtual
from lastcall.lab.apiserver import ApiServer, warnings
from lastcall.lab.apiserver.admission import matching, reviews
from lastcall.lab.apiserver.admission.calling import HttpsCaller, Reply
from lastcall.lab.apiserver.admission.chain import Attributes
from lastcall.lab.apiserver.admission.webhooks import VALIDATING
from lastcall.lab.apiserver.inprocess import InProcess
from lastcall.lab.apiserver.request import ADMIN, Identity, Response
from lastcall.lab.apiserver.status import ApiError

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
        if isinstance(answer, Reply):
            return answer
        response = {"uid": request["uid"], "allowed": True, **answer}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return Reply(200, "application/json", json.dumps(review).encode())

    @property
    def names(self):
        return [name for name, _ in self.asked]


def hook(name, **rest):
    return {
        "name": f"{name}.example.com",
        "clientConfig": {"url": f"https://hooks.example/{name}"},
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **rest,
    }


def patch(*operations):
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def adds(key, value="x"):
    return patch({"op": "add", "path": f"/data/{key}", "value": value})


class World:
    def __init__(self, hooks):
        self.server = ApiServer(virtual.VirtualClock(), Random(1))
        self.server.webhooks.caller = self.hooks = hooks
        self.client = Client(InProcess(self.server, ADMIN))

    async def configure(self, resource, *hooks, name="hooks"):
        kind = {MUTATING_WEBHOOKS: "MutatingWebhookConfiguration"}.get(resource, "ValidatingWebhookConfiguration")
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
        await self.client.create(resource, {**body, "webhooks": list(hooks)})

    async def write(self, name="a", **rest):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}
        return await self.client.create(CONFIG_MAPS, body, namespace="default", **rest)


# -- mutating ----------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_mutating_webhooks_see_what_the_ones_before_have_made():
    world = World(Hooks(one=adds("one"), two=adds("two"), look={}))
    await world.configure(MUTATING_WEBHOOKS, hook("two"), name="b")
    await world.configure(MUTATING_WEBHOOKS, hook("one"), name="a")
    await world.configure(VALIDATING_WEBHOOKS, hook("look"))
    made = await world.write()
    assert made["data"] == {"a": "1", "one": "x", "two": "x"}
    assert world.hooks.names == ["one", "two", "look"]
    assert world.hooks.asked[1][1]["object"]["data"] == {"a": "1", "one": "x"}
    assert world.hooks.asked[2][1]["object"]["metadata"]["uid"] == made["metadata"]["uid"]


@in_virtual_time
async def test_who_wants_to_is_asked_again_after_a_change_and_only_once():
    world = World(Hooks(one=adds("one"), two=adds("two"), never={}))
    again = {"reinvocationPolicy": "IfNeeded"}
    await world.configure(MUTATING_WEBHOOKS, hook("one", **again), hook("never"), hook("two", **again))
    await world.write()
    assert world.hooks.names == ["one", "never", "two", "one"]


@in_virtual_time
async def test_a_patch_that_changes_nothing_asks_nobody_again():
    world = World(Hooks(one={}, two=patch({"op": "test", "path": "/data/a", "value": "1"})))
    await world.configure(MUTATING_WEBHOOKS, hook("one", reinvocationPolicy="IfNeeded"), hook("two"))
    await world.write()
    assert world.hooks.names == ["one", "two"]


PATCHES = {
    "it does not apply": (patch({"op": "remove", "path": "/data/none"}), "Unable to remove nonexistent key"),
    "no type": ({"patch": "W10="}, "webhook returned response.patch but not response.patchType"),
    "no patch": ({"patchType": "JSONPatch"}, "webhook returned response.patchType but not response.patch"),
    "another type": ({"patchType": "Merge", "patch": "W10="}, "invalid value of patchType"),
    "no base64": ({"patchType": "JSONPatch", "patch": "!"}, "received undecodable patch in webhook response"),
    "no list": ({"patchType": "JSONPatch", "patch": "e30="}, "received undecodable patch in webhook response"),
}


@pytest.mark.parametrize(("answer", "said"), PATCHES.values(), ids=PATCHES)
def test_a_wrong_patch_is_an_internal_error(answer, said):
    async def test():
        world = World(Hooks(one=answer))
        await world.configure(MUTATING_WEBHOOKS, hook("one"))
        with pytest.raises(errors.ApiUnavailable, match=said) as caught:
            await world.write()
        assert caught.value.code == 500

    virtual.run(test())


@in_virtual_time
async def test_what_is_deleted_cannot_be_patched():
    world = World(Hooks(one=adds("one")))
    await world.write()
    await world.configure(MUTATING_WEBHOOKS, hook("one"))
    with pytest.raises(errors.ApiUnavailable, match="attempted to modify the object, which is not supported"):
        await world.client.delete(CONFIG_MAPS, "a", namespace="default")


# -- validating --------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_validating_webhooks_are_asked_at_once_and_the_first_refusal_counts():
    def after(seconds, message):
        async def answer(_):
            await asyncio.sleep(seconds)
            return {"allowed": False, "status": {"message": message}}

        return answer

    world = World(Hooks(one=after(3, "late"), two=after(1, "early"), three=after(2, "middle")))
    await world.configure(VALIDATING_WEBHOOKS, hook("one"), hook("two"), hook("three"))
    with pytest.raises(errors.Refused, match=r'"two.example.com" denied the request: early'):
        await world.write()
    assert asyncio.get_running_loop().time() == 3


@in_virtual_time
async def test_the_default_timeout_is_ten_seconds():
    async def never(_):
        await asyncio.sleep(1000)

    world = World(Hooks(one=never))
    await world.configure(VALIDATING_WEBHOOKS, hook("one"))
    with pytest.raises(errors.ApiUnavailable, match=r"timeout=10s\": context deadline exceeded"):
        await world.write()
    assert asyncio.get_running_loop().time() == 10


@in_virtual_time
async def test_a_validating_webhook_may_not_patch():
    world = World(Hooks(one=adds("x")))
    await world.configure(VALIDATING_WEBHOOKS, hook("one"))
    with pytest.raises(errors.ApiUnavailable, match=r"validating webhook may not return response\.patch"):
        await world.write()


@in_virtual_time
async def test_dry_run_asks_only_those_without_side_effects():
    world = World(Hooks(one={}))
    await world.configure(VALIDATING_WEBHOOKS, hook("one", sideEffects="NoneOnDryRun"))
    await world.write(dry_run=True)
    assert world.hooks.asked[0][1]["dryRun"] is True
    assert world.hooks.asked[0][1]["options"]["dryRun"] == ["All"]
    [stored] = world.server.store.objects(VALIDATING)  # no new one may have side effects, but old ones are still there
    old = stored.object()
    old["webhooks"][0]["sideEffects"] = "Some"
    world.server.store.put(stored.key, old, expected=stored.revision)
    with pytest.raises(errors.Refused, match='admission webhook "one.example.com" does not support dry run'):
        await world.write(dry_run=True)


@in_virtual_time
async def test_configurations_of_webhooks_are_shown_to_none():
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    denied = {"allowed": False}
    world = World(Hooks(one=denied))
    await world.configure(VALIDATING_WEBHOOKS, hook("one", rules=[everything]))
    with pytest.raises(errors.Refused, match="without explanation"):
        await world.client.create(NODES, {"metadata": {"name": "n1"}})
    await world.client.delete(VALIDATING_WEBHOOKS, "hooks")
    await world.client.create(NODES, {"metadata": {"name": "n1"}})


@in_virtual_time
async def test_a_namespace_is_selected_by_its_own_labels():
    rule = {**RULE, "resources": ["namespaces"]}
    world = World(Hooks(one={"allowed": False}))
    await world.configure(
        VALIDATING_WEBHOOKS, hook("one", rules=[rule], namespaceSelector={"matchLabels": {"guarded": "yes"}})
    )
    await world.client.create(NAMESPACES, {"metadata": {"name": "free"}})
    with pytest.raises(errors.Refused):
        await world.client.create(NAMESPACES, {"metadata": {"name": "held", "labels": {"guarded": "yes"}}})
    with pytest.raises(errors.Refused):  # an update is judged by the labels that it would give
        await world.client.patch(NAMESPACES, "free", {"metadata": {"labels": {"guarded": "yes"}}})


@in_virtual_time
async def test_only_objects_with_the_labels_are_shown():
    world = World(Hooks(one={"allowed": False}))
    await world.configure(VALIDATING_WEBHOOKS, hook("one", objectSelector={"matchLabels": {"guarded": "yes"}}))
    await world.write("free")
    body = {"metadata": {"name": "held", "labels": {"guarded": "yes"}}}
    with pytest.raises(errors.Refused):
        await world.client.create(CONFIG_MAPS, body, namespace="default")
    assert [request["name"] for _, request in world.hooks.asked] == ["held"]


@in_virtual_time
async def test_the_old_labels_of_an_object_select_it_too():
    world = World(Hooks(one={"allowed": False}))
    body = {"metadata": {"name": "a", "labels": {"guarded": "yes"}}}
    await world.client.create(CONFIG_MAPS, body, namespace="default")
    await world.configure(VALIDATING_WEBHOOKS, hook("one", objectSelector={"matchLabels": {"guarded": "yes"}}))
    with pytest.raises(errors.Refused):
        await world.client.patch(CONFIG_MAPS, "a", {"metadata": {"labels": None}}, namespace="default")


# -- pure --------------------------------------------------------------------------------------------------------------


def attributes(world, **rest):
    group, plural = rest.pop("group", ""), rest.pop("plural", "pods")
    values = {
        "operation": "CREATE",
        "resource": world.server.scheme.find(group, "v1", plural),
        "subresource": "",
        "namespace": "default",
        "name": "a",
        "user": Identity("bob", ("g",)),
        "obj": {"kind": "Pod", "apiVersion": "v1", "metadata": {}},
        "old": None,
        "dry_run": False,
        "options": {},
        **rest,
    }
    return Attributes(**values)


RULES = [
    ({}, {}, True),
    ({"resources": ["*"]}, {}, True),
    ({"resources": ["*"]}, {"subresource": "status"}, False),
    ({"resources": ["*/*"]}, {"subresource": "status"}, True),
    ({"resources": ["*/*"]}, {}, True),
    ({"resources": ["pods/*"]}, {"subresource": "eviction"}, True),
    ({"resources": ["*/status"]}, {"subresource": "status"}, True),
    ({"resources": ["*/status"]}, {}, False),
    ({"resources": ["services", "pods/eviction"]}, {"subresource": "eviction"}, True),
    ({"operations": ["DELETE", "UPDATE"]}, {}, False),
    ({"operations": ["*"]}, {"operation": "CONNECT"}, True),
    ({"apiGroups": ["apps"]}, {}, False),
    ({"apiGroups": ["*"], "apiVersions": ["*"]}, {}, True),
    ({"apiVersions": ["v2"]}, {}, False),
    ({"scope": "Namespaced"}, {}, True),
    ({"scope": "Cluster"}, {}, False),
    ({"scope": "Cluster", "resources": ["nodes"]}, {"plural": "nodes", "namespace": ""}, True),
    ({"scope": "Namespaced", "resources": ["nodes"]}, {"plural": "nodes", "namespace": ""}, False),
    ({"scope": "Cluster", "resources": ["namespaces"]}, {"plural": "namespaces", "namespace": "default"}, True),
    ({"scope": "Namespaced", "resources": ["namespaces"]}, {"plural": "namespaces", "namespace": "default"}, False),
]


@pytest.mark.parametrize(("rule", "write", "asked"), RULES)
def test_rules(rule, write, asked):
    async def test():
        world = World(Hooks())
        one = {**RULE, "operations": ["CREATE"], "resources": ["pods"], **rule}
        [parsed] = matching.hooks({"metadata": {"name": "c"}, "webhooks": [hook("h", rules=[one])]})
        found = matching.concerned(parsed, attributes(world, **write), {"metadata": {}}, ())
        assert (found is not None) is asked

    virtual.run(test())


@in_virtual_time
async def test_conditions():
    world = World(Hooks())

    def met(*expressions, **rest):
        conditions = [{"name": str(number), "expression": one} for number, one in enumerate(expressions)]
        [parsed] = matching.hooks(
            {"metadata": {"name": "c"}, "webhooks": [hook("h", matchConditions=conditions, **rest)]}
        )
        write = attributes(world)
        return matching.conditions_met(parsed, write, reviews.request(write, write.resource, "u"))

    assert met("request.userInfo.username == 'bob'", "object.kind == 'Pod'")
    assert not met("'x' in request.userInfo.groups")
    assert met("oldObject == null", "request.operation == 'CREATE' && !request.dryRun")
    assert not met("object.spec.a == 1", "false")  # one that is false decides
    assert not met("object.spec.a == 1", "true", failurePolicy="Ignore")
    with pytest.raises(ApiError) as caught:
        met("oldObject.spec.a == 1", "object.spec.b == 1")
    assert caught.value.message == (
        "pods \"a\" is forbidden: [expression 'oldObject.spec.a == 1' resulted in error: no such key: spec,"
        " expression 'object.spec.b == 1' resulted in error: no such key: spec]"
    )


@in_virtual_time
async def test_another_version_of_a_resource_is_shown_as_the_one_the_rules_name():
    world = World(Hooks(one={}))
    resource = world.server.scheme.find("autoscaling", "v2", "horizontalpodautoscalers")
    write = attributes(world, resource=resource, obj={"kind": resource.kind, "apiVersion": "autoscaling/v2"})
    rule = {**RULE, "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["*"]}
    older = type(resource)("autoscaling", "v1", resource.plural, resource.kind, resource.behaviour)
    configuration = {"metadata": {"name": "c"}, "webhooks": [hook("h", rules=[rule])]}
    [parsed] = matching.hooks(configuration)
    assert matching.concerned(parsed, write, {"metadata": {}}, (older,)) is older
    shown = reviews.request(write, older, "u")
    assert shown["kind"]["version"] == shown["resource"]["version"] == "v1"
    assert shown["requestKind"]["version"] == shown["requestResource"]["version"] == "v2"
    assert shown["object"]["apiVersion"] == "autoscaling/v1"
    configuration["webhooks"][0]["matchPolicy"] = "Exact"
    [parsed] = matching.hooks(configuration)
    assert matching.concerned(parsed, write, {"metadata": {}}, (older,)) is None


ANSWERS = {
    "a list": (b"[]", "failed to call webhook: couldn't get version/kind; json parse error"),
    "empty": (b"", "failed to call webhook: couldn't get version/kind; json parse error: unexpected end of JSON input"),
    "another kind": (b'{"apiVersion":"v1","kind":"Pod"}', 'failed to call webhook: no kind "Pod" is registered'),
    "no response": (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "webhook response was absent"),
    "another uid": (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"v"}}',
        'received invalid webhook response: expected response.uid="u", got "v"',
    ),
}


@pytest.mark.parametrize(("body", "said"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_that_does_not_count(body, said):
    with pytest.raises(reviews.CallFailed) as caught:
        reviews.understood(body, "u", mutating=False)
    assert said in str(caught.value)


DENIALS = [
    ({}, 400, "", "without explanation"),
    ({"code": 200, "message": "odd"}, 400, "", "denied the request: odd"),
    ({"code": 403, "reason": "Forbidden"}, 403, "Forbidden", "denied the request: Forbidden"),
    ({"code": 429, "details": {"retryAfterSeconds": 7}}, 429, "", "without explanation"),
]


@pytest.mark.parametrize(("status", "code", "reason", "said"), DENIALS)
def test_denials(status, code, reason, said):
    denied = reviews.Denied("h", status)
    assert (denied.code, denied.reason) == (code, reason)
    assert denied.message.endswith(said)
    assert denied.retry_after == status.get("details", {}).get("retryAfterSeconds", 0)


def test_warnings_are_quoted_once_and_cut_when_they_are_many():
    assert warnings.headers(["a", "", "a", "b\nc", 'say "ü"\\']) == [
        '299 - "a"',
        '299 - "say \\"' + "ü".encode().decode("latin-1") + '\\"\\\\"',
    ]
    many = warnings.headers([str(number) * 1000 for number in range(5)])
    assert [len(header) for header in many] == [len('299 - ""') + 256] * 5


# -- over the network --------------------------------------------------------------------------------------------------


class Denying:
    """A webhook behind a real door."""

    async def handle(self, request):
        asked = json.loads(request.body)["request"]
        response = {"uid": asked["uid"], "allowed": False, "status": {"message": f"no {request.path}", "code": 409}}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return Response(200, {"content-type": "application/json"}, json.dumps(review).encode())


async def test_a_webhook_behind_https_and_one_behind_a_service(tmp_path):
    from lastcall.adapters.clock import SystemClock

    server = ApiServer(SystemClock(), Random(1))
    client = Client(InProcess(server))
    caller = HttpsCaller()
    server.webhooks.caller = caller
    world = World.__new__(World)
    world.server, world.client = server, client
    address = "127.64.0.9"  # where endpoints may be, in the lab
    names = [address, "guard.default.svc"]
    async with serving(Denying(), tmp_path, hosts=names, address=address) as (url, authority):
        bundle = base64.b64encode(authority.encode()).decode()
        await world.configure(VALIDATING_WEBHOOKS, hook("one", clientConfig={"url": f"{url}/hook", "caBundle": bundle}))
        with pytest.raises(errors.Conflict, match="denied the request: no /hook"):
            await world.write()
        await client.delete(VALIDATING_WEBHOOKS, "hooks")

        service = {"service": {"namespace": "default", "name": "guard", "path": "/by-name"}, "caBundle": bundle}
        await world.configure(VALIDATING_WEBHOOKS, hook("one", clientConfig=service))
        with pytest.raises(errors.ApiUnavailable, match=r'guard.default.svc:443/by-name.*: service "guard" not found'):
            await world.write()
        await client.create(
            SERVICES,
            {"metadata": {"name": "guard"}, "spec": {"ports": [{"name": "https", "port": 443}]}},
            namespace="default",
        )
        with pytest.raises(errors.ApiUnavailable, match='no endpoints available for service "guard"'):
            await world.write()
        await client.create(
            ENDPOINT_SLICES,
            {
                "metadata": {"name": "guard-1", "labels": {"kubernetes.io/service-name": "guard"}},
                "addressType": "IPv4",
                "ports": [{"name": "https", "port": int(url.rpartition(":")[2])}],
                "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            },
            namespace="default",
        )
        with pytest.raises(errors.Conflict, match="denied the request: no /by-name"):
            await world.write()
        await client.delete(VALIDATING_WEBHOOKS, "hooks")

        await world.configure(VALIDATING_WEBHOOKS, hook("one", clientConfig={"url": f"{url}/hook"}))
        with pytest.raises(errors.ApiUnavailable, match="x509: certificate signed by unknown authority"):
            await world.write()
        await client.delete(VALIDATING_WEBHOOKS, "hooks")
    await world.configure(VALIDATING_WEBHOOKS, hook("one", clientConfig={"url": "https://127.0.0.1:1/"}))
    with pytest.raises(errors.ApiUnavailable, match="dial tcp 127.0.0.1:1: connect: connection refused"):
        await world.write()
    caller.close()
