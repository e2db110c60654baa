"""Attacks on the lab's API server over HTTPS: who has few rights tries to do more by other ways to the same thing."""

import asyncio
import base64
import json
import logging
import os
import ssl
import struct
import zlib
from contextlib import suppress
from random import Random
from urllib.parse import urlsplit

import pytest
from support.lab.https_server import serving

from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.attributes import MASTERS
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.values.request import ADMIN, Request

GROUP = "rbac.authorization.k8s.io"
RBAC, CORE = f"/apis/{GROUP}/v1", "/api/v1/namespaces/default"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
APPLY, MERGE, JSON_PATCH = (f"application/{kind}+{form}" for kind, form in (("apply-patch", "yaml"), ("merge-patch", "json"), ("json-patch", "json")))  # fmt: skip
READS_ALL = {"verbs": ["get", "list", "watch"], "apiGroups": ["*"], "resources": ["*"]}
WATCHES_ALL = {"verbs": ["watch"], "apiGroups": ["*"], "resources": ["*"]}
CHANGES_ALL = {"verbs": ["get", "update", "patch"], "apiGroups": ["*"], "resources": ["*"]}
ACTS_AS_USERS = {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"]}
ONE_SECRET = {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]}
GIVES = {"verbs": ["create", "update", "patch", "get"], "apiGroups": [GROUP], "resources": ["*"]}
FULL = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]


def obj(kind, name, version="v1", **more):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more}


def binding(name, role="cluster-admin", who="alice"):
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    subjects = [{"kind": "User", "apiGroup": GROUP, "name": who}]
    return obj("ClusterRoleBinding", name, f"{GROUP}/v1", roleRef=reference, subjects=subjects)


def role(name, rules, **more):
    return obj("ClusterRole", name, f"{GROUP}/v1", rules=rules, **more)


POD = obj("Pod", "new", spec={"containers": [{"name": "main", "image": "i"}]})
SECRET, LEASE = obj("Secret", "new"), obj("Lease", "new", "coordination.k8s.io/v1", spec={})
TOKEN = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
AGGREGATION = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}


class World:
    def __init__(self, url, authority, server):
        self.address = urlsplit(url)
        self.tls = ssl.create_default_context(cadata=authority)
        self.server = server

    async def admin(self, path, body):
        request = Request.of("POST", path, headers={"content-type": "application/json"}, body=json.dumps(body).encode(), user=ADMIN)  # fmt: skip
        answer = await self.server.handle(request)
        assert answer.status == 201, answer.body

    async def give(self, *rules):
        await self.admin(f"{RBAC}/clusterroles", role("few", [*rules]))
        await self.admin(f"{RBAC}/clusterrolebindings", binding("few", "few"))

    async def ask(self, method, target, body=None, kind="application/json", headers=(), token="alice", behind=b""):  # noqa: S107 (a name)
        """Code and the beginning of the answer; ``target`` is sent as it is, and ``behind`` when it is answered."""
        data = json.dumps(body).encode() if body is not None else b""
        lines = [f"{method} {target} HTTP/1.1", "Host: x", f"Content-Length: {len(data)}", f"Content-Type: {kind}"]
        lines += [f"Authorization: Bearer {token}"] if token else []
        reader, writer = await asyncio.open_connection(
            self.address.hostname, self.address.port, ssl=self.tls, server_hostname="localhost"
        )
        try:
            writer.write("\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + data)
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            writer.write(behind)
            code = int(head.split()[1])
            more = b"" if code < 200 or "content-length: 0" in head.lower() else await reader.read(65536)
            if behind:  # what comes behind has its answer, or none
                with suppress(TimeoutError):
                    more += await asyncio.wait_for(reader.read(), 1.0)
            return code, more.decode(errors="replace")
        finally:
            writer.transport.abort()

    def kept(self):
        """Revision of the store: as it was if nothing has been written."""
        return self.server.store.revision


@pytest.fixture
async def world(tmp_path):
    server = ApiServer(SystemClock(), Random(1), authorization=AuthorizationMode.RBAC)
    server.identities.add("alice", "alice")
    async with serving(server, tmp_path, server.streams.serve_upgrade) as (url, authority):
        world = World(url, authority, server)
        await world.admin(f"{CORE}/serviceaccounts", obj("ServiceAccount", "default"))
        await world.admin("/api/v1/nodes", obj("Node", "n1"))
        await world.admin(f"{CORE}/pods", POD | {"metadata": {"name": "p"}, "spec": {**POD["spec"], "nodeName": "n1"}})
        for name in ("mine", "other"):
            await world.admin(f"{CORE}/secrets", obj("Secret", name, stringData={"k": f"said by {name}"}))
        yield world


WATCH = "/api/v1/watch/namespaces/default"
UPGRADE = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: v5.channel.k8s.io", f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}")  # fmt: skip
SPDY = ("Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io")
WRITES = {
    "POST below watch": (WATCHES_ALL, "POST", f"{WATCH}/pods", POD),
    "PUT below watch": (WATCHES_ALL, "PUT", f"{WATCH}/secrets/other", obj("Secret", "other")),
    "PATCH below watch": (WATCHES_ALL, "PATCH", f"{WATCH}/secrets/other", {"data": {}}, MERGE),
    "DELETE below watch": (WATCHES_ALL, "DELETE", f"{WATCH}/secrets/other"),
    "DELETE of all below watch": (WATCHES_ALL, "DELETE", f"{WATCH}/secrets"),
    "a token below watch": (READS_ALL, "POST", f"{WATCH}/serviceaccounts/default/token", TOKEN),
    "an eviction below watch": (READS_ALL, "POST", f"{WATCH}/pods/p/eviction", obj("Eviction", "p", "policy/v1")),
    "a role below watch": (WATCHES_ALL, "POST", f"/apis/{GROUP}/v1/watch/clusterroles", role("new", [])),
    "POST to a list that says watch": (READS_ALL, "POST", f"{CORE}/pods?watch=1", POD),
    "DELETE of all that says watch": (READS_ALL, "DELETE", f"{CORE}/secrets?watch=true"),
    "another method by a header": (READS_ALL, "GET", f"{CORE}/secrets/other", None, "", ("X-HTTP-Method-Override: DELETE",)),
    "an apply that creates": (CHANGES_ALL, "PATCH", f"{CORE}/secrets/new?fieldManager=m", SECRET, APPLY),
    "an apply that creates a pod": (CHANGES_ALL, "PATCH", f"{CORE}/pods/new?fieldManager=m&force=1", POD, APPLY),
    "a PUT that creates": (CHANGES_ALL, "PUT", f"{LEASES}/new", LEASE),
    "deletecollection by a name": (ONE_SECRET, "DELETE", f"{CORE}/secrets?fieldSelector=metadata.name%3Dmine"),
    "a token": (CHANGES_ALL, "POST", f"{CORE}/serviceaccounts/default/token", TOKEN),
    "the status of a right to objects": ({**CHANGES_ALL, "resources": ["pods"]}, "PATCH", f"{CORE}/pods/p/status", {"status": {}}, MERGE),
    "ephemeral containers": ({**CHANGES_ALL, "resources": ["pods"]}, "PATCH", f"{CORE}/pods/p/ephemeralcontainers", {}, MERGE),
    "a role with all": (GIVES, "POST", f"{RBAC}/clusterroles", role("new", FULL)),
    "a role with all by an apply": (GIVES, "PATCH", f"{RBAC}/clusterroles/new?fieldManager=m", role("new", FULL), APPLY),
    "a role with all by a PUT": (GIVES, "PUT", f"{RBAC}/clusterroles/new", role("new", FULL)),
    "an own role by a JSON patch": (GIVES, "PATCH", f"{RBAC}/clusterroles/few", [{"op": "replace", "path": "/rules", "value": FULL}], JSON_PATCH),
    "an own role that aggregates": (GIVES, "PATCH", f"{RBAC}/clusterroles/few", AGGREGATION, MERGE),
    "a binding by an apply": (GIVES, "PATCH", f"{RBAC}/clusterrolebindings/new?fieldManager=m", binding("new"), APPLY),
    "a binding by a PUT": (GIVES, "PUT", f"{RBAC}/clusterrolebindings/new", binding("new")),
    "a subject of another's binding": (GIVES, "PATCH", f"{RBAC}/clusterrolebindings/cluster-admin", {"subjects": binding("x")["subjects"]}, MERGE),
    "as a master": (READS_ALL, "POST", f"{CORE}/pods", POD, "application/json", ("Impersonate-User: x", "Impersonate-Group: system:masters")),
    "as a master by the right to users": (ACTS_AS_USERS, "POST", f"{CORE}/pods", POD, "application/json", ("Impersonate-User: x", "Impersonate-Group: system:masters")),
    "as a service account by the right to users": (ACTS_AS_USERS, "POST", f"{CORE}/serviceaccounts/default/token", TOKEN, "application/json", ("Impersonate-User: system:serviceaccount:kube-system:generic-garbage-collector",)),
    "as a master among groups": (READS_ALL, "POST", f"{CORE}/pods", POD, "application/json", ("Impersonate-User: alice", "Impersonate-Group: a", "Impersonate-Group: system:masters")),
}  # fmt: skip


@pytest.mark.parametrize("attack", WRITES.values(), ids=WRITES)
async def test_nobody_writes_by_another_way(world, attack):
    rule, method, target, *more = attack
    await world.give(rule)
    before = world.kept()
    code, said = await world.ask(method, target, *more)
    if method != "GET":
        assert code in (403, 404, 405), said
        assert "BEGIN" not in said
        assert "eyJ" not in said, "no token"
    assert world.kept() == before, said


READS = {
    "another name": f"{CORE}/secrets/other",
    "all": f"{CORE}/secrets",
    "of all namespaces": "/api/v1/secrets",
    "of a namespace without a name": "/api/v1/namespaces//secrets",
    "by the selector of a name and a second selector": f"{CORE}/secrets?fieldSelector=type%3DOpaque&fieldSelector=metadata.name%3Dmine",
    "by the first of two selectors": f"{CORE}/secrets?fieldSelector=metadata.name%3Dmine&fieldSelector=metadata.name%3Dother",
    "by a selector of two names": f"{CORE}/secrets?fieldSelector=metadata.name%3Dmine,metadata.name%3Dother",
    "by all but one name": f"{CORE}/secrets?fieldSelector=metadata.name!%3Dmine",
    "by a watch of another name": f"{WATCH}/secrets/other?timeoutSeconds=1",
    "by a watch that says a name": f"{WATCH}/secrets?fieldSelector=metadata.name%3Dmine&timeoutSeconds=1",
    "by an own name and another": f"{WATCH}/secrets/mine?fieldSelector=metadata.name%3Dother&timeoutSeconds=1",
    "by an escaped letter": f"{CORE}/secrets/%6fther",
    "by an escaped slash": f"{CORE}/secrets%2Fother",
    "by an escaped question mark": f"{CORE}/secrets/other%3Fx",
    "by dots": f"{CORE}/secrets/mine/../other",
    "by escaped dots": f"{CORE}/secrets/mine/%2e%2e/other",
    "by two slashes": f"/{CORE}/secrets/other",
    "by a slash at the end": f"{CORE}/secrets/other/",
    "by a path with a host": "https://x/api/v1/namespaces/default/secrets/other",
    "by a path in the public": "/healthz/../api/v1/namespaces/default/secrets/other",
    "by a proxy": "/api/v1/nodes/n1/proxy/secrets",
    "by the log": f"{CORE}/pods/p/log",
    "by the log below watch": f"{WATCH}/pods/p/log",
    "as a table": f"{CORE}/secrets?includeObject=Object",
    "metrics": "/metrics",
    "the lab's pages": "/lab/redfish",
}  # fmt: skip


@pytest.mark.parametrize("target", READS.values(), ids=READS)
async def test_nobody_reads_what_another_name_has(world, target):
    await world.give(ONE_SECRET)
    other = base64.b64encode(b"said by other").decode()
    code, said = await world.ask("GET", target)
    assert other not in said
    assert code != 200 or '"other"' not in said
    assert (await world.ask("GET", f"{CORE}/secrets/mine"))[0] == 200, "the right that was given"


STREAMS = {
    "exec below watch": (WATCHES_ALL, f"{WATCH}/pods/p/exec?command=sh"),
    "exec of a reader": (READS_ALL, f"{CORE}/pods/p/exec?command=sh"),
    "attach of a reader": (READS_ALL, f"{CORE}/pods/p/attach"),
    "attach below watch": (READS_ALL, f"{WATCH}/pods/p/attach"),
    "portforward of a reader": (READS_ALL, f"{CORE}/pods/p/portforward?ports=80"),
    "exec of the right to pods": ({**READS_ALL, "verbs": ["*"], "resources": ["pods"]}, f"{CORE}/pods/p/exec?command=sh"),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "target"), STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize(("method", "headers"), [("GET", UPGRADE), ("POST", SPDY), ("GET", SPDY)])
async def test_nobody_gets_a_stream_by_another_way(world, rule, target, method, headers):
    await world.give(rule)
    code, said = await world.ask(method, target, None, "", headers)
    assert code in (400, 403, 404, 405, 501), said


def spdy(number, content, flags=0, length=None):
    """A control frame of SPDY 3.1, which may lie about its length."""
    return struct.pack("!II", 0x80030000 | number, flags << 24 | (len(content) if length is None else length)) + content


BOMB = struct.pack("!IIH", 1, 0, 0) + zlib.compress(bytes(2**24))
FRAMES = {
    "streams": b"".join(spdy(1, struct.pack("!IIH", number, 0, 0)) for number in (1, 3, 3, 2, 0, 2**31 - 1)),
    "headers that grow a thousandfold": spdy(1, BOMB),
    "a length without end": spdy(1, b"", length=2**24 - 1),
    "a cut-off frame": spdy(6, b"\0\0"),
    "data of no stream": struct.pack("!II", 7, 2**24 - 1) + bytes(9),
    "a goodbye": spdy(7, bytes(8)),
    **{f"random bytes {seed}": Random(seed).randbytes(2000) for seed in range(6)},
}


@pytest.mark.parametrize("part", ["exec?command=sh&stdin=1&stdout=1", "attach?stdout=1", "portforward?ports=80"])
async def test_spdy_is_refused_and_its_frames_are_never_read(world, caplog, part):
    """The lab has WebSockets alone: what comes behind the request is no HTTP, and ends the connection."""
    world.server.identities.add("master", "master", (MASTERS,))
    refusal = (501, "port-forward is not served") if "portforward" in part else (400, "Upgrade request required")

    async def refused(method, name):
        target = f"{CORE}/pods/p/{part}"
        code, said = await world.ask(method, target, None, "", SPDY, token="master", behind=FRAMES[name])
        assert code == refusal[0], (name, said)
        assert refusal[1] in said, name

    await asyncio.gather(*(refused(method, name) for method in ("GET", "POST") for name in FRAMES))
    assert not [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]
    code, _ = await world.ask("GET", f"{CORE}/pods/p", token="master")
    assert code == 200, "others are served"


NODE = {
    "another node": ("PATCH", "/api/v1/nodes/n2", {"metadata": {"labels": {"a": "b"}}}),
    "another node's status": ("PATCH", "/api/v1/nodes/n2/status", {"status": {}}),
    "a forbidden label by the status": ("PATCH", "/api/v1/nodes/n1/status", {"metadata": {"labels": {"node-role.kubernetes.io/x": ""}}}),
    "a taint": ("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
    "a pod of another node": ("DELETE", f"{CORE}/pods/q", None),
    "the pods of all nodes": ("DELETE", f"{CORE}/pods", None),
    "status of a pod of another": ("PATCH", f"{CORE}/pods/q/status", {"status": {"phase": "Failed"}}),
    "eviction of a pod of another": ("POST", f"{CORE}/pods/q/eviction", obj("Eviction", "q", "policy/v1")),
    "a pod that is no mirror": ("POST", f"{CORE}/pods", POD | {"spec": {**POD["spec"], "nodeName": "n1"}}),
    "a token without a pod": ("POST", f"{CORE}/serviceaccounts/default/token", TOKEN),
    "its pod's spec": ("PATCH", f"{CORE}/pods/p", {"spec": {"activeDeadlineSeconds": 5}}),
    "another's lease": ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", obj("Lease", "n2", "coordination.k8s.io/v1", spec={})),
    "a binding": ("POST", f"{CORE}/pods/q/binding", obj("Binding", "q", target={"kind": "Node", "name": "n1"})),
    "its node below watch": ("DELETE", "/api/v1/watch/nodes/n1", None),
    "a secret below watch": ("DELETE", f"{WATCH}/secrets/mine", None),
}  # fmt: skip


@pytest.mark.parametrize(("method", "target", "body"), NODE.values(), ids=NODE)
async def test_a_node_changes_nothing_that_is_not_its_own(world, method, target, body):
    world.server.identities.add("n1", "system:node:n1", ("system:nodes", "system:authenticated"))
    await world.admin("/api/v1/nodes", obj("Node", "n2"))
    volumes = [{"name": "v", "secret": {"secretName": "mine"}}]
    for name, node in (("q", "n2"), ("r", "n1")):
        spec = {**POD["spec"], "nodeName": node, "volumes": volumes}
        await world.admin(f"{CORE}/pods", POD | {"metadata": {"name": name}, "spec": spec})
    before = world.kept()
    code, said = await world.ask(method, target, body, MERGE if method == "PATCH" else "application/json", token="n1")
    assert code in (403, 404, 405), said
    assert world.kept() == before, said
