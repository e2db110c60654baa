"""The watch of a node's own pods, with the node's own identity, at the lab's API server with RBAC."""

from random import Random

import pytest

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.own_pods import KEPT_DELETED, OwnPods
from lastcall.adapters.kube.resources import NAMESPACES, NODES, PODS, dict_resource
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import ApiNotPermitted, Unavailable
from lastcall.manifests.agent import agent_access_objects
from lastcall.names import MIRROR_ANNOTATION
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.control_plane.identities import agent_identity, kubelet_identity

ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
SPEC = {"containers": [{"name": "main", "image": "i"}]}


class Line:
    """A transport that is cut while ``away``."""

    def __init__(self, transport):
        self._transport, self.away = transport, False

    async def request(self, *arguments, **rest):
        if self.away:
            raise Unavailable("the API server does not run")
        return await self._transport.request(*arguments, **rest)

    def close(self):
        self._transport.close()


class World:
    """A server with the nodes n1 and n2; ``own`` watches the pods of ``node`` as the node n1."""

    def __init__(self, node="n1"):
        clock = virtual.VirtualClock()
        self.server = ApiServer(clock, Random(1), authorization=AuthorizationMode.RBAC)
        self.admin = Client(InProcessTransport(self.server))
        self.line = Line(InProcessTransport(self.server, kubelet_identity("n1")))
        self.client, self.changes = Client(self.line), 0
        self.own = OwnPods(self.client, node, clock=clock, random=Random(1), on_change=self._changed)
        self.clock = clock
        self.tasks = OrderedTaskGroup()

    def _changed(self):
        self.changes += 1

    async def begin(self):
        await self.admin.create(ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        for name in ("n1", "n2"):
            await self.admin.create(NODES, {"metadata": {"name": name}})
        self.tasks.start(self.own.run(), "watch")

    async def pod(self, name, node="n1", metadata=None, **spec):
        body = {"metadata": {"name": name, **(metadata or {})}, "spec": {**SPEC, "nodeName": node, **spec}}
        made = await self.admin.create(PODS, body, namespace="default")
        return made["metadata"]["uid"]

    async def mirror(self, name, static_uid):
        uid = (await self.admin.get(NODES, "n1"))["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
        body = {
            "metadata": {"name": name, "annotations": {MIRROR_ANNOTATION: static_uid}, "ownerReferences": [owner]},
            "spec": {**SPEC, "nodeName": "n1", "priorityClassName": "system-node-critical"},
        }
        return (await self.client.create(PODS, body, namespace="default"))["metadata"]["uid"]

    async def force_delete(self, name):
        await self.admin.delete(PODS, name, namespace="default", grace=0)

    def known(self):
        return {uid: pod.metadata.name for uid, pod in self.own.pods.items()}


def lives(scene, **options):
    async def main():
        world = World(**options)
        await world.begin()
        try:
            await scene(world)
        finally:
            await world.tasks.cancel()

    virtual.run(main())


def test_a_node_watches_its_own_pods_and_no_others():
    async def scene(world):
        assert (world.own.in_sync, world.own.was_listed, world.own.failure) == (False, False, None)
        first = await world.pod("first", priorityClassName="system-cluster-critical")
        await world.pod("elsewhere", node="n2")
        await world.clock.sleep(1)
        second = await world.pod("second")
        await world.clock.sleep(1)
        assert world.known() == {first: "first", second: "second"}
        assert world.own.pods[first].spec.priority == 2_000_000_000
        assert world.own.in_sync

    lives(scene)


def test_another_nodes_pods_are_refused_and_the_reason_is_known():
    async def scene(world):
        await world.pod("elsewhere", node="n2")
        await world.clock.sleep(100)
        assert (world.known(), world.own.was_listed, world.own.in_sync) == ({}, False, False)
        assert isinstance(world.own.failure, ApiNotPermitted)
        with pytest.raises(ApiNotPermitted):
            await world.client.list(PODS)

    lives(scene, node="n2")


def test_an_agents_service_account_may_watch_them_too():
    """By the roles of ``lastcall manifests agent``."""

    async def scene(world):
        await world.admin.create(NAMESPACES, {"metadata": {"name": "lastcall-system"}})
        for obj in agent_access_objects():
            await world.admin.apply(_resource(obj), obj["metadata"]["name"], obj, namespace=_namespace(obj))
        uid = await world.pod("first")
        account = Client(InProcessTransport(world.server, agent_identity("n1")))
        own = OwnPods(account, "n1", clock=world.clock, random=Random(1), on_change=lambda: None)
        world.tasks.start(own.run(), "watch")
        await world.clock.sleep(1)
        assert (own.in_sync, list(own.pods)) == (True, [uid])
        await world.pod("second")
        await world.clock.sleep(1)
        assert len(own.pods) == 2

    lives(scene)


def _resource(obj):
    group, _, version = obj["apiVersion"].rpartition("/")
    return dict_resource(group, version, obj["kind"].lower() + "s")


def _namespace(obj):
    return obj["metadata"].get("namespace", "")


def test_a_mirror_pod_is_known_by_the_uid_of_its_static_pod():
    async def scene(world):
        own = await world.mirror("etcd-n1", "hash-of-the-manifest")
        await world.clock.sleep(1)
        [(uid, pod)] = world.own.pods.items()
        assert (uid, pod.metadata.uid, pod.spec.priority) == ("hash-of-the-manifest", own, 2_000_001_000)
        await world.force_delete("etcd-n1")
        await world.clock.sleep(1)
        assert list(world.own.pods) == [uid], "the static pod continues to run"
        again = await world.mirror("etcd-n1", "hash-of-the-manifest")
        await world.clock.sleep(1)
        assert world.own.pods[uid].metadata.uid == again

    lives(scene)


def test_a_deletion_under_way_and_its_grace_are_known():
    async def scene(world):
        uid = await world.pod("first")
        await world.clock.sleep(1)
        await world.admin.delete(PODS, "first", namespace="default", grace=7)
        await world.clock.sleep(1)
        metadata = world.own.pods[uid].metadata
        assert metadata.deletion_timestamp
        assert metadata.deletion_grace_period_seconds == 7

    lives(scene)


def test_pods_that_were_deleted_stay_known_but_not_for_ever():
    async def scene(world):
        first = await world.pod("first")
        stays = await world.pod("stays")
        await world.clock.sleep(1)
        await world.force_delete("first")
        for number in range(KEPT_DELETED - 1):
            await world.pod(f"p{number}")
            await world.force_delete(f"p{number}")
        await world.clock.sleep(1)
        assert first in world.own.pods
        await world.pod("last")
        await world.force_delete("last")
        await world.clock.sleep(1)
        assert first not in world.own.pods
        assert stays in world.own.pods
        assert len(world.own.pods) == KEPT_DELETED + 1

    lives(scene)


def test_a_change_is_told_only_if_the_agent_needs_to_know():
    async def scene(world):
        await world.pod("first")
        await world.clock.sleep(1)
        before = world.changes
        assert before >= 1
        patch = {"metadata": {"annotations": {"a": "b"}}}
        await world.admin.patch(PODS, "first", patch, namespace="default")
        await world.clock.sleep(1)
        assert world.changes == before
        await world.admin.patch(PODS, "first", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
        await world.clock.sleep(1)
        assert world.changes == before + 1

    lives(scene)


def test_an_outage_leaves_what_is_known_and_is_told():
    async def scene(world):
        world.line.away = True
        await world.clock.sleep(1)
        assert (world.own.was_listed, world.own.in_sync) == (False, False)
        world.line.away = False
        uid = await world.pod("first")
        await world.clock.sleep(60)
        assert world.own.in_sync
        world.line.away = True
        await world.clock.sleep(1000)  # its watch has ended
        assert (world.known(), world.own.in_sync) == ({uid: "first"}, False)
        assert "does not run" in str(world.own.failure)
        await world.force_delete("first")
        second = await world.pod("second")
        world.line.away = False
        await world.clock.sleep(100)
        assert world.own.in_sync
        assert world.known() == {uid: "first", second: "second"}

    lives(scene)
