"""Large bodies and long answers at the door of the lab's API server: other clients are served meanwhile."""

import asyncio
import contextlib
import json
import ssl
import threading
from random import Random

import pytest
from support.lab import https_server

from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.encoding import go_json, yaml_limits
from lastcall_lab.apiserver.patches import patch_bodies as patches
from lastcall_lab.apiserver.registry.body_worker import LARGE, BodyWorkerThread
from lastcall_lab.apiserver.storage.store import StorageKey
from lastcall_lab.apiserver.values.request import Request, Response

SECONDS = 60
CORE, RBAC = "/api/v1/namespaces/default", "/apis/rbac.authorization.k8s.io/v1"
YAML, JSON, APPLY = "application/yaml", "application/json", "application/apply-patch+yaml"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/d"
MORE = "x" * LARGE


def of(kind, version="v1", **more):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "annotations": {"a": MORE}}, **more}


MAP = of("ConfigMap")
WAYS = {
    "POST": ("POST", f"{CORE}/configmaps", JSON, MAP),
    "POST of YAML": ("POST", f"{CORE}/configmaps", YAML, MAP),
    "PUT": ("PUT", f"{CORE}/configmaps/m", JSON, MAP),
    "a merge patch": ("PATCH", f"{CORE}/configmaps/m", patches.MERGE_PATCH, {"data": {"a": MORE}}),
    "a strategic patch": ("PATCH", f"{CORE}/configmaps/m", patches.STRATEGIC, {"data": {"a": MORE}}),
    "a JSON patch": ("PATCH", f"{CORE}/configmaps/m", patches.JSON_PATCH, [{"op": "add", "path": "/data", "value": {"a": MORE}}]),
    "an apply": ("PATCH", f"{CORE}/configmaps/m?fieldManager=f", APPLY, {**MAP, "metadata": {"name": "m"}, "data": {"a": MORE}}),
    "an apply that creates": ("PATCH", f"{CORE}/configmaps/a?fieldManager=f", APPLY, MAP),
    "options of a DELETE": ("DELETE", f"{CORE}/configmaps/m", JSON, {"kind": "DeleteOptions", "apiVersion": "v1", "x": MORE}),
    "options of a DELETE of all": ("DELETE", f"{CORE}/configmaps", YAML, {"kind": "DeleteOptions", "apiVersion": "v1", "x": MORE}),
    "a review of a token": ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", JSON, of("TokenReview", "authentication.k8s.io/v1", spec={"token": "t"})),
    "a review of rights": ("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", JSON, of("SelfSubjectRulesReview", "authorization.k8s.io/v1", spec={"namespace": "default"})),
    "a token": ("POST", f"{CORE}/serviceaccounts/default/token", JSON, of("TokenRequest", "authentication.k8s.io/v1", spec={})),
    "a binding": ("POST", f"{CORE}/pods/p/binding", JSON, of("Binding", target={"kind": "Node", "name": "n"})),
    "an eviction": ("POST", f"{CORE}/pods/p/eviction", YAML, of("Eviction", "policy/v1")),
    "a scale": ("PUT", f"{DEPLOYMENT}/scale", YAML, of("Scale", "autoscaling/v1", spec={"replicas": 1})),
    "a patch of a scale": ("PATCH", f"{DEPLOYMENT}/scale", patches.MERGE_PATCH, {"metadata": {"annotations": {"a": MORE}}}),
}  # fmt: skip


async def lab(aside):
    server = ApiServer(SystemClock(), Random(1), offload=aside)
    server.identities.add("t", "admin", ("system:masters",))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    for path, obj in (
        (f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}}),
        (f"{CORE}/configmaps", {"metadata": {"name": "m"}}),
        (f"{CORE}/pods", {"metadata": {"name": "p"}, "spec": template["spec"]}),
        (DEPLOYMENT.rpartition("/")[0], deployment),
    ):
        answer = await server.handle(Request.of("POST", path, body=json.dumps(obj).encode()))
        assert answer.status == 201, answer.body
    return server


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_no_large_body_is_read_on_the_loop(monkeypatch, way):
    """Neither as JSON nor as YAML; a small one is, since a thread costs more than that."""
    readers = []
    for module, name in ((go_json, "decode_clean_json"), (yaml_limits, "check_yaml_limits")):
        read = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda data, read=read: readers.append(threading.current_thread()) or read(data)
        )
    server = await lab(BodyWorkerThread())
    assert set(readers) == {threading.main_thread()}
    readers.clear()
    method, target, media, said = way
    headers = {"content-type": media}
    await server.handle(Request.of(method, target, headers=headers, body=json.dumps(said).encode()))
    assert readers
    assert threading.main_thread() not in readers


async def test_a_small_request_is_answered_before_a_large_one(tmp_path):
    """The large one waits in its thread until the other has had its answer."""
    begun, answered, thread = asyncio.Event(), threading.Event(), BodyWorkerThread()

    async def aside(request, work):
        def held():
            assert answered.wait(SECONDS)
            return work()

        if len(request.body) < LARGE:
            return work()
        begun.set()
        return await thread(request, held)

    async with https_server.serving(await lab(aside), tmp_path) as (url, authority):
        context = ssl.create_default_context(cadata=authority)
        async with asyncio.timeout(SECONDS):
            large = asyncio.create_task(asked(url, context, "POST", f"{CORE}/configmaps", json.dumps(MAP).encode()))
            await begun.wait()
            assert b" 200 " in (await asked(url, context, "GET", f"{CORE}/configmaps/m", b""))[:20]
            assert not large.done()
            answered.set()
            assert b" 201 " in (await large)[:20]


async def test_others_are_served_while_a_long_list_is_sent(tmp_path):
    order = []

    class Handler:
        async def handle(self, request):
            return Response(200, {"connection": "close"}, self.pieces())

        def pieces(self):
            asyncio.get_running_loop().call_soon(order.append, "another")
            for index in range(100):
                order.append(index)
                yield b"%05d" % index + b"x" * 4091

    async with https_server.serving(Handler(), tmp_path) as (url, authority):
        context = ssl.create_default_context(cadata=authority)
        async with asyncio.timeout(SECONDS):
            said = await asked(url, context, "GET", "/", b"")
    assert said.count(b"x") == 4091 * 100
    assert order.index("another") < 10


async def test_nothing_more_is_made_for_a_client_that_has_gone(tmp_path):
    made, gone = [], asyncio.Event()

    class Handler:
        async def handle(self, request):
            return Response(200, {}, self.pieces())

        def pieces(self):
            try:
                while True:
                    made.append(1)
                    yield b"x" * 4096
            finally:
                gone.set()

    async with https_server.serving(Handler(), tmp_path) as (url, authority):
        context = ssl.create_default_context(cadata=authority)
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), ssl=context)
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await reader.readexactly(100_000)
        writer.transport.abort()
        async with asyncio.timeout(SECONDS):
            await gone.wait()


async def test_two_services_that_are_checked_at_once_do_not_get_one_address():
    async def aside(request, work):
        done = work()
        await asyncio.sleep(0)
        return done

    server = await lab(aside)
    spec = {"type": "NodePort", "clusterIP": "10.96.0.77", "ports": [{"port": 80, "nodePort": 30100}]}
    answers = await asyncio.gather(*(post(server, of("Service", spec=spec), name) for name in "ab"))
    assert sorted(answer.status for answer in answers) == [201, 422]


@pytest.mark.parametrize("call", [1, 2, 3])
async def test_no_large_object_is_made_in_a_namespace_that_is_deleted_meanwhile(call):
    """While one of the thread's parts of the request is waited for."""
    calls = []

    async def aside(request, work):
        done = work()
        if request.path.endswith("/configmaps") and len(request.body) > LARGE:
            calls.append(work)
            if len(calls) == call:
                namespace = StorageKey("namespaces", "", "default")
                there = server.store.get(namespace)
                server.store.delete(namespace, {"metadata": {"name": "default"}}, expected=there.revision)
        return done

    server = await lab(aside)
    answer = await post(server, {**MAP, "data": {"a": MORE}}, "late", "configmaps")
    assert len(calls) >= call
    assert answer.status == 404, answer.body


async def post(server, obj, name, plural="services"):
    body = json.dumps(obj | {"metadata": {"name": name}}).encode()
    headers = {"content-type": JSON, "authorization": "Bearer t"}
    return await server.handle(Request.of("POST", f"{CORE}/{plural}", headers=headers, body=body))


async def asked(url, context, method, target, body):
    """The answer to one request over a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), ssl=context)
    lines = (method + " " + target + " HTTP/1.1", "host: x", "authorization: Bearer t", "connection: close")
    try:
        writer.write("\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body)
        with contextlib.suppress(ssl.SSLError):
            return await reader.read()
    finally:
        writer.transport.abort()
