"""The audit of the lab's API server: one record for every request, and what rules of RBAC would have to allow."""

import json

import pytest
from support.lab.virtual_server import Asked

from lastcall_lab import virtual
from lastcall_lab.apiserver.authorization.audit import AuditLog, PermissionUse, append_to, summarize_uses
from lastcall_lab.apiserver.values.request import Request, UserInfo

AGENT = UserInfo("system:serviceaccount:lastcall:agent", ("system:serviceaccounts", "system:authenticated"))
CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"


def audited(test, **how):
    async def main():
        clock = virtual.VirtualClock()
        await test(Asked(clock, audit=AuditLog(clock, **how)))

    virtual.run(main())


REQUESTS = [
    # method, target, body: what is recorded of it
    (("GET", f"{CORE}/pods", None), ("list", "", "pods", "", "default", "", 200, False)),
    (("GET", f"{CORE}/pods?watch=1&timeoutSeconds=1", None), ("watch", "", "pods", "", "default", "", 200, False)),
    (("GET", "/api/v1/watch/namespaces/default/pods", None), ("watch", "", "pods", "", "default", "", 200, False)),
    (("GET", f"{CORE}/pods/p", None), ("get", "", "pods", "", "default", "p", 404, False)),
    (("GET", f"{CORE}/pods/p/log", None), ("get", "", "pods", "log", "default", "p", 404, False)),
    (
        ("POST", f"{CORE}/configmaps?dryRun=All", {"metadata": {"name": "m"}}),
        ("create", "", "configmaps", "", "default", "", 201, True),
    ),
    (
        ("PUT", f"{APPS}/deployments/d/status", {"metadata": {"name": "d"}}),
        ("update", "apps", "deployments", "status", "default", "d", 404, False),
    ),
    (("PATCH", "/api/v1/nodes/n", {}), ("patch", "", "nodes", "", "", "n", 404, False)),
    (("DELETE", f"{CORE}/pods/p", {"dryRun": ["All"]}), ("delete", "", "pods", "", "default", "p", 404, True)),
    (("DELETE", f"{CORE}/pods", {"dryRun": []}), ("deletecollection", "", "pods", "", "default", "", 200, False)),
    (
        ("POST", f"{CORE}/pods/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["All"]}}),
        ("create", "", "pods", "eviction", "default", "p", 404, True),
    ),
    (("GET", f"{CORE}/nonsense", None), ("list", "", "nonsense", "", "default", "", 404, False)),
]


@pytest.mark.parametrize(("request_", "recorded"), REQUESTS, ids=lambda one: " ".join(map(str, one[:2])))
def test_records(request_, recorded):
    async def test(server):
        method, target, body = request_
        data = json.dumps(body).encode() if body is not None else b""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"content-type": kind}
        response = await server.handle(Request.of(method, target, body=data, headers=headers, user=AGENT))
        (one,) = server.audit.records
        found = (one.verb, one.group, one.resource, one.subresource, one.namespace, one.name, one.code, one.dry_run)
        assert (found, one.path) == (recorded, "")
        assert (one.user, one.groups) == (AGENT.name, AGENT.groups)
        if not isinstance(response.body, bytes):
            await response.body.aclose()

    audited(test)


def test_what_is_no_resource_has_a_path():
    async def test(server):
        await server.handle(Request.of("GET", "/nowhere/at/all"))
        (one,) = server.audit.records
        assert (one.verb, one.resource, one.path, one.code) == ("get", "", "/nowhere/at/all", 404)

    audited(test)


def test_times_are_those_of_the_clock():
    async def test(server):
        await server.clock.sleep(5)
        before = server.clock.wall()
        await server.ask("GET", f"{CORE}/pods")
        (one,) = server.audit.records
        assert (one.wall, one.seconds) == (before, 0)

    audited(test)


def test_who_is_not_known_is_nobody():
    async def test(server):
        headers = {"authorization": "Bearer nobody-knows-it"}
        response = await server.handle(Request.of("GET", f"{CORE}/pods", headers=headers))
        (one,) = server.audit.records
        assert (response.status, one.code, one.user, one.groups) == (401, 401, "", ())

    audited(test)


def test_streams_that_are_not_answered_by_http():
    async def test(server):
        async def receive():
            return {"type": "websocket.connect"}

        sent = []

        async def send(message):
            sent.append(message["type"])

        request = Request.of("GET", f"{CORE}/pods/p/exec?command=ls", user=AGENT)
        await server.streams.serve_upgrade(request, {"type": "websocket"}, receive, send)
        (one,) = server.audit.records
        assert (one.user, one.verb, one.resource, one.subresource, one.code) == (AGENT.name, "get", "pods", "exec", 404)
        assert "websocket.accept" not in sent

    audited(test)


def test_a_file_has_all_of_it(tmp_path):
    path = tmp_path / "audit.jsonl"

    async def test(server):
        await server.ask("GET", f"{CORE}/pods")

    for _ in range(2):
        with append_to(path) as sink:
            audited(test, sink=sink)
    assert [json.loads(line)["verb"] for line in path.read_text().splitlines()] == ["list", "list"]


def test_only_so_many_are_kept_but_all_are_counted():
    lines = []

    async def test(server):
        for name in ("a", "b", "c"):
            await server.ask("GET", f"{CORE}/pods/{name}", user=AGENT)
        await server.ask("GET", f"{CORE}/secrets")
        assert [one.name for one in server.audit.records] == ["c", ""]
        pods = PermissionUse(AGENT.name, "get", "", "pods", "")
        assert summarize_uses(server.audit.used) == [
            (PermissionUse("kubernetes-admin", "list", "", "secrets", ""), 1),
            (pods, 3),
        ]
        assert summarize_uses(server.audit.used, AGENT.name) == [(pods, 3)]

    audited(test, kept=2, sink=lines.append)
    written = [json.loads(line) for line in lines]
    assert [one["name"] for one in written] == ["a", "b", "c", ""]
    assert written[0]["groups"] == list(AGENT.groups)
    assert all(line.endswith("\n") for line in lines)
