"""Custom resources go with their owners, with their namespace, and what they own goes with them."""

import pytest
from support.lab.controller_cluster import LabCluster, on_cluster
from support.lab.custom_definitions import DEFINITIONS, GADGETS, WIDGETS, custom, definition, owned, owner

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import CONFIG_MAPS, NAMESPACES, dict_resource
from lastcall.aio import wait_first
from lastcall.errors import Unavailable
from lastcall_lab import virtual
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.control_plane.controller_set import make_controllers
from lastcall_lab.controllers.cluster.garbage_collector import UNKNOWN_SECONDS, UNLISTED_SECONDS, GarbageCollector
from lastcall_lab.controllers.framework.actions import DeleteObject, IfOwnersGone, PatchObject
from lastcall_lab.controllers.framework.view import ObjectRef, View
from lastcall_lab.controllers.objects.served_kinds import ServedKind
from lastcall_lab.controllers.runner.api_client import ClusterApiClient

CONTROLLERS = [one for one in make_controllers("PEM") if one.name in ("garbage-collector", "namespace")]


async def define(cluster, **options):
    await cluster.create(DEFINITIONS, definition(**options), namespace="")


async def map_of(cluster, name, *owners, **metadata):
    return await cluster.create(CONFIG_MAPS, owned(name, *owners, **metadata))


def maps(cluster):
    return [name for name in cluster.names(CONFIG_MAPS) if name != "kube-root-ca.crt"]


@on_cluster(*CONTROLLERS)
async def test_what_a_custom_resource_owns_goes_with_it(cluster):
    await cluster.settle()
    await define(cluster)
    widget = await cluster.create(WIDGETS, custom("w"))
    await map_of(cluster, "mine", owner(widget))
    await cluster.settle(10)
    assert maps(cluster) == ["mine"]
    await cluster.delete(WIDGETS, "w")
    await cluster.until(lambda: not maps(cluster))


@on_cluster(*CONTROLLERS)
async def test_a_custom_resource_goes_with_its_owner(cluster):
    await define(cluster)
    root = await map_of(cluster, "root")
    widget = await cluster.create(WIDGETS, custom("w", owner(root, "v1", "ConfigMap")))
    await define(cluster, plural="gadgets", kind="Gadget", scope="Namespaced")
    await cluster.create(GADGETS, custom("g", owner(widget), kind="Gadget"))
    await cluster.settle(10)
    assert cluster.names(WIDGETS) == ["w"]
    await cluster.delete(CONFIG_MAPS, "root")
    await cluster.until(lambda: cluster.count(WIDGETS) + cluster.count(GADGETS) == 0)


@on_cluster(*CONTROLLERS)
async def test_in_the_foreground_a_custom_resource_waits_and_is_waited_for(cluster):
    await define(cluster)
    root = await cluster.create(WIDGETS, custom("root"))
    held = custom("held", owner(root, block=True), finalizers=["example.com/hold"])
    middle = await cluster.create(WIDGETS, held)
    await map_of(cluster, "leaf", owner(middle, block=True))
    await cluster.delete(WIDGETS, "root", propagation="Foreground")
    await cluster.settle(10)
    assert cluster.names(WIDGETS) == ["held", "root"]
    assert not maps(cluster)
    assert cluster.get(WIDGETS, "held")["metadata"]["finalizers"] == ["example.com/hold"]
    await cluster.patch(WIDGETS, "held", {"metadata": {"finalizers": None}})
    await cluster.until(lambda: cluster.count(WIDGETS) == 0)


@on_cluster(*CONTROLLERS)
async def test_what_another_owner_keeps_only_loses_its_reference(cluster):
    await define(cluster)
    first = await cluster.create(WIDGETS, custom("first"))
    second = await cluster.create(WIDGETS, custom("second"))
    third = await cluster.create(WIDGETS, custom("third"))
    await map_of(cluster, "both", owner(first), owner(second, block=True), owner(third))
    await cluster.delete(WIDGETS, "first")
    await cluster.delete(WIDGETS, "second", propagation="Foreground")
    await cluster.until(lambda: cluster.names(WIDGETS) == ["third"])
    [left] = cluster.get(CONFIG_MAPS, "both")["metadata"]["ownerReferences"]
    assert left["name"] == "third"


@on_cluster(*CONTROLLERS)
async def test_an_owner_of_the_whole_cluster(cluster):
    await define(cluster, scope="Cluster")
    widget = await cluster.create(WIDGETS, custom("w"), namespace="")
    await map_of(cluster, "mine", owner(widget))
    roles = dict_resource("rbac.authorization.k8s.io", "v1", "clusterroles")
    role = await cluster.create(roles, {"metadata": {"name": "reader"}, "rules": []}, namespace="")
    await map_of(cluster, "roles", owner(role, "rbac.authorization.k8s.io/v1", "ClusterRole"))
    await cluster.settle(10)
    assert maps(cluster) == ["mine", "roles"]
    await cluster.delete(WIDGETS, "w", namespace="")
    await cluster.until(lambda: maps(cluster) == ["roles"])


@on_cluster(*CONTROLLERS)
async def test_what_they_own_goes_when_the_definition_does(cluster):
    await define(cluster)
    widget = await cluster.create(WIDGETS, custom("w"))
    await map_of(cluster, "mine", owner(widget))
    stranger = {"metadata": {"name": "nobody", "uid": "of-a-kind-that-was-never-there"}}
    await map_of(cluster, "kept", owner(stranger, kind="Gizmo"))
    await cluster.settle()
    await cluster.delete(DEFINITIONS, "widgets.x.example.com", namespace="")
    await cluster.until(lambda: maps(cluster) == ["kept"])
    await define(cluster)
    again = await cluster.create(WIDGETS, custom("w"))
    await map_of(cluster, "new", owner(again))
    await cluster.settle(60)
    assert maps(cluster) == ["kept", "new"]
    await cluster.delete(WIDGETS, "w")
    await cluster.until(lambda: maps(cluster) == ["kept"])


@on_cluster(*CONTROLLERS)
async def test_another_version_is_stored_from_now_on(cluster):
    await define(cluster)
    widget = await cluster.create(WIDGETS, custom("w"))
    await map_of(cluster, "mine", owner(widget))
    await cluster.settle()
    two = definition(versions=("v2", "v1"))["spec"]["versions"]
    two[1]["served"] = False
    await cluster.patch(DEFINITIONS, "widgets.x.example.com", {"spec": {"versions": two}}, namespace="")
    await cluster.settle(60)
    assert maps(cluster) == ["mine"], "its owner is there, in a version that is not served any more"
    await cluster.delete(dict_resource("x.example.com", "v2", "widgets"), "w")
    await cluster.until(lambda: not maps(cluster))


@on_cluster(*CONTROLLERS)
async def test_they_go_with_their_namespace(cluster):
    await define(cluster)
    await cluster.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    await cluster.create(WIDGETS, custom("free"), namespace="shop")
    await cluster.create(WIDGETS, custom("held", finalizers=["example.com/hold"]), namespace="shop")
    await cluster.create(WIDGETS, custom("elsewhere"))
    await cluster.client.delete(NAMESPACES, "shop")
    await cluster.until(lambda: cluster.names(WIDGETS) == ["elsewhere", "held"])
    await cluster.settle(10)
    [condition] = cluster.get(NAMESPACES, "shop")["status"]["conditions"]
    assert condition["message"] == "Some resources are remaining: widgets.x.example.com has 1 resource instances"
    await cluster.patch(WIDGETS, "held", {"metadata": {"finalizers": None}}, namespace="shop")
    await cluster.until(lambda: cluster.get(NAMESPACES, "shop") is None)
    assert cluster.names(WIDGETS) == ["elsewhere"]


def test_controllers_that_begin_later_find_what_there_is():
    async def main():
        cluster = LabCluster(virtual.VirtualClock(), CONTROLLERS)
        await cluster.begin()
        await define(cluster)
        widget = await cluster.create(WIDGETS, custom("w"))
        await map_of(cluster, "mine", owner(widget))
        await map_of(cluster, "left", owner({"metadata": {"name": "gone", "uid": "long-gone"}}))
        await wait_first(cluster.runner.run(), looks(cluster))

    async def looks(cluster):
        await cluster.until(lambda: maps(cluster) == ["mine"])
        await cluster.settle(60)
        assert maps(cluster) == ["mine"]

    virtual.run(main())


# -- a view that is behind ---------------------------------------------------------------------------------------------

KINDS = {("v1", "ConfigMap"): ServedKind("configmaps", namespaced=True)}
KEY = ObjectRef("configmaps", "default", "mine")


def behind(*, listed=True):
    """A view that has a definition and a dependent, and has not seen the owner."""
    view = View()
    made = definition()
    made["metadata"] |= {"uid": "d", "resourceVersion": "1"}
    made["status"] = {"conditions": [{"type": "Established", "status": "True"}], "acceptedNames": {"kind": "Widget"}}
    view.apply("customresourcedefinitions.apiextensions.k8s.io", made, None)
    reference = owner({"metadata": {"name": "w", "uid": "w-1"}})
    mine = {"metadata": {"name": "mine", "namespace": "default", "uid": "m", "resourceVersion": "2"}}
    mine["metadata"]["ownerReferences"] = [reference]
    view.apply("configmaps", mine, None)
    if listed:
        view.mark_listed("widgets.x.example.com")
    return view


def test_a_resource_that_is_not_listed_yet_is_waited_for():
    decision = GarbageCollector(KINDS).decide(KEY, behind(listed=False), 0.0)
    assert (decision.actions, decision.again_in) == ((), UNLISTED_SECONDS)


@pytest.mark.parametrize("finalizer", ["foregroundDeletion", "orphan"])
def test_an_owner_waits_until_all_that_may_depend_on_it_is_listed(finalizer):
    metadata = {"name": "root", "namespace": "default", "uid": "r", "resourceVersion": "3"}
    metadata |= {"deletionTimestamp": "2027-01-15T08:00:00Z", "finalizers": [finalizer]}
    key = ObjectRef("configmaps", "default", "root")
    for listed in (False, True):
        view = behind(listed=listed)
        view.apply("configmaps", {"metadata": metadata}, None)
        decision = GarbageCollector(KINDS).decide(key, view, 0.0)
        gone = PatchObject(key, {"metadata": {"finalizers": None}}, uid="r", revision="3")
        assert decision.actions == ((gone,) if listed else ())
        assert decision.again_in == (None if listed else UNLISTED_SECONDS)


def test_an_owner_of_an_unknown_kind_is_looked_for_again():
    view = View()
    mine = {"metadata": {"name": "mine", "namespace": "default", "uid": "m", "resourceVersion": "2"}}
    mine["metadata"]["ownerReferences"] = [owner({"metadata": {"name": "w", "uid": "w-1"}})]
    view.apply("configmaps", mine, None)
    decision = GarbageCollector(KINDS).decide(KEY, view, 0.0)
    assert (decision.actions, decision.again_in) == ((), UNKNOWN_SECONDS)


def test_an_owner_that_was_not_seen_is_asked_for_first():
    [action] = GarbageCollector(KINDS).decide(KEY, behind(), 0.0).actions
    place = ObjectRef("widgets.x.example.com", "default", "w")
    assert action == IfOwnersGone(((place, "w-1"),), DeleteObject(KEY, uid="m", propagation="Background"))


@on_cluster()
async def test_nothing_is_collected_whose_owner_is_there(cluster):
    hands = ClusterApiClient(Client(InProcessTransport(cluster.server)), cluster.clock, cluster.random)
    there = await map_of(cluster, "there")
    await map_of(cluster, "mine")
    place = ObjectRef("configmaps", "default", "there")
    with pytest.raises(Unavailable, match="configmaps/default/there exists"):
        await hands.act(IfOwnersGone(((place, there["metadata"]["uid"]),), DeleteObject(KEY)), "test")
    assert maps(cluster) == ["mine", "there"]
    await hands.act(IfOwnersGone(((place, "another"),), PatchObject(KEY, {"data": {"a": "b"}})), "test")
    assert cluster.get(CONFIG_MAPS, "mine")["data"] == {"a": "b"}
    await hands.act(IfOwnersGone(((ObjectRef("configmaps", "default", "none"), "u"),), DeleteObject(KEY)), "test")
    assert maps(cluster) == ["there"]
