"""The tokens that a kubelet may ask for, and what it may write of claims and pods: ``NodeRestriction``."""

import json
from random import Random

import pytest

from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.values.request import ADMIN, Request
from lastcall_lab.control_plane.identities import kubelet_identity

CORE = "/api/v1/namespaces/default"
TOKEN = f"{CORE}/serviceaccounts/default/token"
SOURCES = [{"serviceAccountToken": {"path": "token", "audience": "vault"}}]
MERGE = "application/merge-patch+json"


class World:
    def __init__(self):
        self.server = ApiServer(virtual.VirtualClock(), Random(1), authorization=AuthorizationMode.RBAC)

    async def ask(self, user, method, path, body=None, kind="application/json"):
        data = json.dumps(body).encode() if body else b""
        request = Request.of(method, path, headers={"content-type": kind}, body=data, user=user)
        answer = await self.server.handle(request)
        return answer.status, json.loads(answer.body)

    async def make(self, plural, kind, name, **body):
        obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **body}
        status, said = await self.ask(ADMIN, "POST", f"{CORE}/{plural}", obj)
        assert status == 201, said
        return said

    async def begin(self):
        """Two pods, on nodes of their own; the UID of the first."""
        for name in ("default", "other"):
            await self.make("serviceaccounts", "ServiceAccount", name)
        volumes = [{"name": "v", "projected": {"sources": SOURCES}}]
        uids = {}
        for node in ("n1", "n2"):
            container = {"name": "main", "image": "i"}
            spec = {"nodeName": node, "containers": [container], "volumes": volumes}
            uids[node] = (await self.make("pods", "Pod", f"on-{node}", spec=spec))["metadata"]["uid"]
        return uids

    async def token(self, bound, audiences=(), path=TOKEN):
        spec = {"audiences": [*audiences], "boundObjectRef": bound}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return await self.ask(kubelet_identity("n1"), "POST", path, body)


def pod(name="on-n1", **more):
    return {"apiVersion": "v1", "kind": "Pod", "name": name, **more}


REFUSED = {
    "bound to nothing": (lambda uids: None, (), "node requested token not bound to a pod"),
    "bound to a Secret": (lambda uids: pod(kind="Secret"), (), "node requested token not bound to a pod"),
    "without a uid": (lambda uids: pod(), (), "node requested token with a pod binding without a uid"),
    "with another uid": (lambda uids: pod(uid="x"), (), "the UID in the bound object reference (x) does not match"),
    "of another node": (
        lambda uids: pod("on-n2", uid=uids["n2"]),
        (),
        "node requested token bound to a pod scheduled on a different node",
    ),
    "for two audiences": (lambda uids: pod(uid=uids["n1"]), ("a", "b"), "node may only request 0 or 1 audiences"),
    "for an audience of nobody": (
        lambda uids: pod(uid=uids["n1"]),
        ("bank",),
        (
            'audience "bank" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this'
            " audience"
        ),
    ),
}


@pytest.mark.parametrize(("bound", "audiences", "message"), REFUSED.values(), ids=REFUSED)
def test_a_token_that_a_node_may_not_have(bound, audiences, message):
    async def main():
        world = World()
        uids = await world.begin()
        status, said = await world.token(bound(uids), audiences)
        assert (status, message in said["message"]) == (403, True), said["message"]

    virtual.run(main())


def test_a_token_of_a_pod_on_the_node():
    async def main():
        world = World()
        uids = await world.begin()
        assert (await world.token(pod(uid=uids["n1"]), ["vault"]))[0] == 201
        assert (await world.token(pod(uid=uids["n1"])))[0] == 201, "the token that every pod has"
        other = f"{CORE}/serviceaccounts/other/token"
        assert (await world.token(pod(uid=uids["n1"]), path=other))[0] == 403

    virtual.run(main())


def test_what_a_node_writes_of_a_claim():
    async def main():
        world = World()
        await world.make("serviceaccounts", "ServiceAccount", "default")
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "i"}], "volumes": volumes}
        await world.make("pods", "Pod", "p", spec=spec)
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await world.make("persistentvolumeclaims", "PersistentVolumeClaim", "c", spec=asked)
        path, node = f"{CORE}/persistentvolumeclaims/c/status", kubelet_identity("n1")
        grown = {"status": {"capacity": {"storage": "2Gi"}}}
        assert (await world.ask(node, "PATCH", path, grown, MERGE))[0] == 200
        status, said = await world.ask(node, "PATCH", path, {"status": {"phase": "Lost"}}, MERGE)
        assert status == 403
        assert 'node "n1" is not allowed to update fields other than status.quantity' in said["message"]
        labelled = {"metadata": {"labels": {"a": "b"}}}
        assert (await world.ask(node, "PATCH", path, labelled, MERGE))[0] == 403
        assert (await world.ask(kubelet_identity("n2"), "PATCH", path, grown, MERGE))[0] == 403

    virtual.run(main())


def test_the_token_of_a_pod_names_its_node():
    """As policies of admission see it, such as that of ``lastcall manifests agent --own-node``."""

    async def main():
        world = World()
        uids = await world.begin()
        for name in ("n1", "n2"):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            assert (await world.ask(ADMIN, "POST", "/api/v1/nodes", node))[0] == 201
        token = (await world.token(pod(uid=uids["n1"])))[1]["status"]["token"]

        def extra():
            found = world.server.identities.of(token)
            return found and found.extra["authentication.kubernetes.io/node-name"]

        assert extra() == ["n1"]
        await world.ask(ADMIN, "DELETE", "/api/v1/nodes/n1")
        assert extra() == ["n1"], "the node of the pod was told, and may be gone"
        await world.ask(ADMIN, "DELETE", f"{CORE}/pods/on-n1?gracePeriodSeconds=0")
        assert extra() is None

    virtual.run(main())
