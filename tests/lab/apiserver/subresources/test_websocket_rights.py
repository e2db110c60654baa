"""Who may run commands in pods by a WebSocket, which begins with a GET."""

import json
from random import Random

import pytest

from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authentication.authenticator import ANONYMOUS
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.values.request import ADMIN, Request

GROUP = "rbac.authorization.k8s.io"
EXEC = "/api/v1/namespaces/default/pods/p/exec?command=sh"
SCOPE = {"type": "websocket", "extensions": {"websocket.http.response": {}}}


async def upgraded(verbs, headers):
    """Code and message of the answer to a WebSocket, where alice has these verbs for ``pods/exec``."""
    server = ApiServer(virtual.VirtualClock(), Random(1), authorization=AuthorizationMode.RBAC)
    server.identities.add("t", "alice")
    api = f"{GROUP}/v1"
    rules = [{"verbs": verbs, "apiGroups": [""], "resources": ["pods/exec"]}]
    role = {"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": "x"}, "rules": rules}
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "x"}
    subjects = [{"kind": "User", "apiGroup": GROUP, "name": "alice"}]
    binding = {"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": {"name": "x"}, "roleRef": reference}
    for plural, obj in (("clusterroles", role), ("clusterrolebindings", binding | {"subjects": subjects})):
        body, kind = json.dumps(obj).encode(), {"content-type": "application/json"}
        made = await server.handle(Request.of("POST", f"/apis/{api}/{plural}", headers=kind, body=body, user=ADMIN))
        assert made.status == 201
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    await server.streams.serve_upgrade(Request.of("GET", EXEC, headers=headers, user=ANONYMOUS), SCOPE, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])["message"]


ALICE = {"authorization": "Bearer t"}
CASES = {
    "nobody": (["*"], {}, 403, 'User "system:anonymous" cannot get resource "pods/exec"'),
    "a header alone": (["*"], {"impersonate-user": "alice"}, 403, "cannot impersonate-on:user-info:get"),
    "a wrong token": (["*"], {"authorization": "Bearer x"}, 401, "Unauthorized"),
    "no verb": (["list"], ALICE, 403, 'User "alice" cannot get resource "pods/exec"'),
    "only get": (["get"], ALICE, 403, 'User "alice" cannot create resource "pods/exec"'),
    "only create": (["create"], ALICE, 403, 'User "alice" cannot get resource "pods/exec"'),
    "both": (["get", "create"], ALICE, 404, 'pods "p" not found'),
}


@pytest.mark.parametrize(("verbs", "headers", "code", "message"), CASES.values(), ids=CASES)
def test_who_may_run_commands(verbs, headers, code, message):
    found, said = virtual.run(upgraded(verbs, headers))
    assert (found, message in said) == (code, True), said
