"""Admission webhooks: who is asked, in which order, and what their answers do. Recorded cases tell the rest."""

import asyncio
import base64
import contextlib
import json
import re

import pytest
from support.lab.https_server import serving
from support.lab.scripted_webhooks import RULE, Hooks, World, hook
from support.virtual_time.worker import in_virtual_time

from lastcall import errors
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.resources import (
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    SERVICES,
    VALIDATING_WEBHOOKS,
)
from lastcall.aio import timeout
from lastcall_lab import virtual
from lastcall_lab.apiserver.admission.webhook_client import HttpsCaller, WebhookDestination
from lastcall_lab.apiserver.admission.webhooks import VALIDATING
from lastcall_lab.apiserver.values.request import Response


def patch(*operations):
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def adds(key, value="x"):
    return patch({"op": "add", "path": f"/data/{key}", "value": value})


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
    with pytest.raises(errors.RequestRefused, match=r'"two.example.com" denied the request: early'):
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
    old = stored.to_object()
    old["webhooks"][0]["sideEffects"] = "Some"
    world.server.store.put(stored.key, old, expected=stored.revision)
    with pytest.raises(errors.RequestRefused, match='admission webhook "one.example.com" does not support dry run'):
        await world.write(dry_run=True)


@in_virtual_time
async def test_configurations_of_webhooks_are_shown_to_none():
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    denied = {"allowed": False}
    world = World(Hooks(one=denied))
    await world.configure(VALIDATING_WEBHOOKS, hook("one", rules=[everything]))
    with pytest.raises(errors.RequestRefused, match="without explanation"):
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
    with pytest.raises(errors.RequestRefused):
        await world.client.create(NAMESPACES, {"metadata": {"name": "held", "labels": {"guarded": "yes"}}})
    with pytest.raises(errors.RequestRefused):  # an update is judged by the labels that it would give
        await world.client.patch(NAMESPACES, "free", {"metadata": {"labels": {"guarded": "yes"}}})


@in_virtual_time
async def test_only_objects_with_the_labels_are_shown():
    world = World(Hooks(one={"allowed": False}))
    await world.configure(VALIDATING_WEBHOOKS, hook("one", objectSelector={"matchLabels": {"guarded": "yes"}}))
    await world.write("free")
    body = {"metadata": {"name": "held", "labels": {"guarded": "yes"}}}
    with pytest.raises(errors.RequestRefused):
        await world.client.create(CONFIG_MAPS, body, namespace="default")
    assert [request["name"] for _, request in world.hooks.asked] == ["held"]


@in_virtual_time
async def test_the_old_labels_of_an_object_select_it_too():
    world = World(Hooks(one={"allowed": False}))
    body = {"metadata": {"name": "a", "labels": {"guarded": "yes"}}}
    await world.client.create(CONFIG_MAPS, body, namespace="default")
    await world.configure(VALIDATING_WEBHOOKS, hook("one", objectSelector={"matchLabels": {"guarded": "yes"}}))
    with pytest.raises(errors.RequestRefused):
        await world.client.patch(CONFIG_MAPS, "a", {"metadata": {"labels": None}}, namespace="default")


# -- over the network --------------------------------------------------------------------------------------------------


class Denying:
    """A webhook behind a real door."""

    async def handle(self, request):
        asked = json.loads(request.body)["request"]
        response = {"uid": asked["uid"], "allowed": False, "status": {"message": f"no {request.path}", "code": 409}}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return Response(200, {"content-type": "application/json"}, json.dumps(review).encode())


@pytest.fixture
async def real():
    """A world whose server calls over the network."""
    caller = HttpsCaller()
    yield World(caller, SystemClock())
    caller.close()


async def test_connections_are_kept_for_the_destinations_that_were_called_last():
    """Each endpoint, redirection and bundle is another destination; one that is called now keeps its connection."""
    caller, doors = HttpsCaller(), Doors()
    server = await asyncio.start_server(doors.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        slow = asyncio.create_task(caller.call(WebhookDestination("http://slow/slow", ("127.0.0.1", port)), b""))
        await doors.slow_is_asked.wait()
        for number in range(40):
            assert (
                await caller.call(WebhookDestination(f"http://h{number}/h{number}", ("127.0.0.1", port)), b"")
            ).body == b"ok"
        await until(lambda: len(doors.open) < 40)
        assert {"slow", "h39"} <= doors.open
        assert "h0" not in doors.open
        doors.slow_may_go.set()
        assert (await slow).body == b"ok"
        assert (await caller.call(WebhookDestination("http://h0/h0", ("127.0.0.1", port)), b"")).body == b"ok"
    finally:
        doors.slow_may_go.set()
        caller.close()
        server.close()
        await until(lambda: not doors.open)


class Doors:
    """An HTTP server; ``open`` are the paths that were asked on connections which are open."""

    def __init__(self):
        self.open = set()
        self.slow_is_asked, self.slow_may_go = asyncio.Event(), asyncio.Event()

    async def serve(self, reader, writer):
        path = ""
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while head := (await reader.readuntil(b"\r\n\r\n")).decode().lower():
                path = re.search(r"^post /(\w+)", head)[1]
                self.open.add(path)
                if path == "slow":
                    self.slow_is_asked.set()
                    await self.slow_may_go.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        self.open.discard(path)
        writer.close()


async def until(holds):
    async with timeout(20):
        while not holds():
            await asyncio.sleep(0.01)


async def configure(real, **where):
    await real.configure(VALIDATING_WEBHOOKS, hook("one", clientConfig=where))


def trusting(authority):
    return base64.b64encode(authority.encode()).decode()


async def test_a_webhook_behind_https(real, tmp_path):
    async with serving(Denying(), tmp_path) as (url, authority):
        await configure(real, url=f"{url}/hook", caBundle=trusting(authority))
        with pytest.raises(errors.Conflict, match="denied the request: no /hook"):
            await real.write()
        await real.client.delete(VALIDATING_WEBHOOKS, "hooks")

        await configure(real, url=f"{url}/hook")
        with pytest.raises(errors.ApiUnavailable, match="x509: certificate signed by unknown authority"):
            await real.write()


async def test_a_webhook_that_is_not_there(real):
    await configure(real, url="https://127.0.0.1:1/")
    with pytest.raises(errors.ApiUnavailable, match="dial tcp 127.0.0.1:1: connect: connection refused"):
        await real.write()


async def test_a_webhook_behind_a_service(real, tmp_path):
    address = "127.64.0.9"  # where endpoints may be, in the lab
    async with serving(Denying(), tmp_path, hosts=["guard.default.svc"], address=address) as (url, authority):
        service = {"namespace": "default", "name": "guard", "path": "/by-name"}
        await configure(real, service=service, caBundle=trusting(authority))
        with pytest.raises(errors.ApiUnavailable, match=r'guard.default.svc:443/by-name.*: service "guard" not found'):
            await real.write()
        made = {"metadata": {"name": "guard"}, "spec": {"ports": [{"name": "https", "port": 443}]}}
        await real.client.create(SERVICES, made, namespace="default")
        with pytest.raises(errors.ApiUnavailable, match='no endpoints available for service "guard"'):
            await real.write()
        endpoints = {
            "metadata": {"name": "guard-1", "labels": {"kubernetes.io/service-name": "guard"}},
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": int(url.rpartition(":")[2])}],
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        }
        await real.client.create(ENDPOINT_SLICES, endpoints, namespace="default")
        with pytest.raises(errors.Conflict, match="denied the request: no /by-name"):
            await real.write()
