"""Claims, volumes and attachments with the toy driver, in virtual time; who could write what, as a table."""

import functools
from pathlib import Path

import pytest
from support.lab.controller_cluster import on_cluster
from support.lab.volume_kubelets import Kubelets, claim, pod, storage_class

from lastcall.adapters.kube.resources import (
    ATTACHMENTS,
    CLAIMS,
    CSI_NODES,
    EVENTS,
    NODES,
    PODS,
    STORAGE_CLASSES,
    VOLUMES,
)
from lastcall.errors import Unavailable
from lastcall_lab import virtual
from lastcall_lab.controllers.nodes.node_lifecycle import NodeLifecycleController
from lastcall_lab.controllers.scheduling.scheduler import Scheduler
from lastcall_lab.controllers.volumes.attach_detach import AttachDetachController, DetachRules
from lastcall_lab.controllers.volumes.volume_binder import VolumeBinderController
from lastcall_lab.controllers.volumes.volume_protection import ClaimProtectionController, VolumeProtectionController
from lastcall_lab.volumes import DRIVER
from lastcall_lab.volumes.attacher import Attacher, AttacherSettings
from lastcall_lab.volumes.provisioner import Provisioner
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_events import AccessFault, VolumeEvent, VolumeEventType, find_violations
from lastcall_lab.volumes.volume_store import InMemoryVolumes

OUT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def with_volumes(*more, rules=None):
    """A cluster with all that volumes need, three nodes and a storage; the test gets the nodes."""

    def decorate(test):
        storage = Storage(InMemoryVolumes(), virtual.VirtualClock())
        controllers = (
            *(
                Scheduler(),
                NodeLifecycleController(),
                VolumeBinderController(),
                ClaimProtectionController(),
                VolumeProtectionController(),
            ),
            *(
                AttachDetachController(rules),
                Provisioner(storage),
                Attacher(storage, AttacherSettings(attach=1.0, detach=1.0)),
            ),
        )

        @functools.wraps(test)
        async def run(cluster):
            nodes = Kubelets(cluster, storage)
            await nodes.begin("n1", "n2", "n3")
            await cluster.create(STORAGE_CLASSES, storage_class(), namespace="")
            try:
                await test(nodes)
            finally:
                await nodes.end()

        return on_cluster(*controllers, *more)(run)

    return decorate


def phase(cluster, resource, name):
    return cluster.get(resource, name)["status"].get("phase")


def events(cluster, reason):
    return [one["message"] for one in cluster.all(EVENTS) if one["reason"] == reason]


@with_volumes()
async def test_a_claim_waits_for_its_pod_and_gets_a_volume_that_is_attached_to_its_node(nodes):
    cluster = nodes.cluster
    await cluster.create(CLAIMS, claim("data"))
    await cluster.settle()
    assert phase(cluster, CLAIMS, "data") == "Pending"
    assert events(cluster, "WaitForFirstConsumer") == ["waiting for first consumer to be created before binding"]
    await cluster.create(PODS, pod("web", "data"))
    await cluster.until(lambda: phase(cluster, PODS, "web") == "Running", 20)
    found, (volume,) = cluster.get(CLAIMS, "data"), cluster.all(VOLUMES)
    assert (found["status"]["phase"], volume["status"]["phase"]) == ("Bound", "Bound")
    assert volume["metadata"]["name"] == f"pvc-{found['metadata']['uid']}" == found["spec"]["volumeName"]
    assert found["status"]["capacity"] == {"storage": "1Gi"}
    node = cluster.get(PODS, "web")["spec"]["nodeName"]
    assert found["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
    assert volume["spec"]["csi"]["driver"] == DRIVER
    assert sorted(volume["metadata"]["finalizers"]) == [
        "external-attacher/csi-lab-lastcall-dev",
        "external-provisioner.volume.kubernetes.io/finalizer",
        "kubernetes.io/pv-protection",
    ]
    (attachment,) = cluster.all(ATTACHMENTS)
    assert attachment["spec"]["nodeName"] == node
    assert attachment["status"]["attached"] is True
    (attached,) = cluster.get(NODES, node)["status"]["volumesAttached"]
    assert attached["name"] == f"kubernetes.io/csi/{DRIVER}^{volume['metadata']['name']}"
    assert events(cluster, "ProvisioningSucceeded") == [f"Successfully provisioned volume {volume['metadata']['name']}"]
    said = f'AttachVolume.Attach succeeded for volume "{volume["metadata"]["name"]}" '
    assert events(cluster, "SuccessfulAttachVolume") == [said]
    await cluster.settle(5)
    assert b"\n".join([node.encode()] * 2) in await nodes.storage._shelf.read(volume["metadata"]["name"], "log")
    assert find_violations(nodes.storage.records) == []


@with_volumes()
async def test_what_is_used_is_protected_and_what_nobody_claims_is_removed(nodes):
    cluster = nodes.cluster
    await cluster.create(STORAGE_CLASSES, storage_class("kept", "Immediate", "Retain"), namespace="")
    await cluster.create(CLAIMS, claim("data"))
    await cluster.create(CLAIMS, claim("kept", of="kept"))
    await cluster.until(lambda: phase(cluster, CLAIMS, "kept") == "Bound", 20)
    await cluster.create(PODS, pod("web", "data"))
    await cluster.until(lambda: phase(cluster, PODS, "web") == "Running", 20)
    await cluster.delete(CLAIMS, "data")
    await cluster.delete(CLAIMS, "kept")
    await cluster.settle(5)
    assert cluster.names(CLAIMS) == ["data"], "a pod uses it"
    assert [phase(cluster, VOLUMES, name) for name in cluster.names(VOLUMES)].count("Released") == 1
    await cluster.delete(PODS, "web")
    await cluster.until(lambda: cluster.names(CLAIMS) == [], 20)
    await cluster.until(lambda: cluster.count(VOLUMES) == 1, 20)
    (left,) = cluster.all(VOLUMES)
    assert left["spec"]["storageClassName"] == "kept"
    assert cluster.count(ATTACHMENTS) == 0
    assert len(nodes.storage._shelf._volumes) == 1


@with_volumes()
async def test_volumes_that_are_there_are_taken_before_new_ones_are_made(nodes):
    cluster = nodes.cluster
    for name, size in (("large", "9Gi"), ("fitting", "2Gi"), ("small", "1Mi")):
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "manual",
            "csi": {"driver": DRIVER, "volumeHandle": name},
        }
        affinity = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n3"]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}}
        await cluster.create(VOLUMES, {"metadata": {"name": name}, "spec": spec}, namespace="")
    manual = {**storage_class("manual"), "provisioner": "kubernetes.io/no-provisioner"}
    await cluster.create(STORAGE_CLASSES, manual, namespace="")
    await cluster.create(CLAIMS, claim("data", of="manual"))
    await cluster.create(PODS, pod("web", "data"))
    await cluster.until(lambda: phase(cluster, PODS, "web") == "Running", 20)
    assert cluster.get(CLAIMS, "data")["spec"]["volumeName"] == "fitting"
    assert cluster.get(PODS, "web")["spec"]["nodeName"] == "n3", "where the volume can be"
    assert [phase(cluster, VOLUMES, name) for name in ("large", "fitting", "small")] == [
        "Available",
        "Bound",
        "Available",
    ]
    await cluster.create(CLAIMS, claim("more", of="none"))
    await cluster.settle()
    assert events(cluster, "ProvisioningFailed") == ['storageclass.storage.k8s.io "none" not found']


@with_volumes()
async def test_what_the_scheduler_says_of_volumes(nodes):
    cluster = nodes.cluster
    await cluster.create(STORAGE_CLASSES, {**storage_class("slow", "Immediate"), "provisioner": "x/y"}, namespace="")
    await cluster.create(CLAIMS, claim("slow", of="slow"))
    await cluster.create(CLAIMS, claim("one", mode="ReadWriteOncePod"))
    await cluster.create(PODS, pod("none", "nothing"))
    await cluster.create(PODS, pod("slow", "slow"))
    await cluster.create(PODS, pod("first", "one"))
    await cluster.until(lambda: phase(cluster, PODS, "first") == "Running", 20)
    await cluster.create(PODS, pod("second", "one"))
    await cluster.settle(5)

    def why(name):
        conditions = cluster.get(PODS, name)["status"]["conditions"]
        return next(one["message"] for one in conditions if one["type"] == "PodScheduled")

    assert why("none") == '0/3 nodes are available: persistentvolumeclaim "nothing" not found. not found'
    assert why("slow") == "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    in_use = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
    assert why("second").startswith(f"0/3 nodes are available: 3 {in_use}. ")
    await cluster.delete(PODS, "first")
    await cluster.until(lambda: phase(cluster, PODS, "second") == "Running", 20)


@with_volumes()
async def test_a_node_takes_no_more_volumes_than_its_driver_says(nodes):
    cluster = nodes.cluster
    driver = {"name": DRIVER, "nodeID": "n1", "allocatable": {"count": 1}, "topologyKeys": None}
    await cluster.create(CSI_NODES, {"metadata": {"name": "n1"}, "spec": {"drivers": [driver]}}, namespace="")
    await cluster.create(STORAGE_CLASSES, storage_class("now", "Immediate"), namespace="")
    for name in ("a", "b"):
        await cluster.create(CLAIMS, claim(name, of="now"))
    await cluster.until(lambda: all(phase(cluster, CLAIMS, name) == "Bound" for name in "ab"), 20)
    at_n1 = {"kubernetes.io/hostname": "n1"}
    await cluster.create(PODS, pod("a", "a", nodeSelector=at_n1))
    await cluster.until(lambda: phase(cluster, PODS, "a") == "Running", 20)
    await cluster.create(PODS, pod("b", "b", nodeSelector=at_n1))
    await cluster.settle(5)
    conditions = cluster.get(PODS, "b")["status"]["conditions"]
    assert "1 node(s) exceed max volume count, 2 node(s) didn't match" in conditions[0]["message"]


@with_volumes()
async def test_a_volume_leaves_its_node_only_when_the_node_has_unmounted_it(nodes):
    cluster = nodes.cluster
    await cluster.create(CLAIMS, claim("data"))
    await cluster.create(PODS, pod("old", "data"))
    await cluster.until(lambda: phase(cluster, PODS, "old") == "Running", 20)
    node = cluster.get(PODS, "old")["spec"]["nodeName"]
    others = [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node]}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": others}]}
    elsewhere = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    await cluster.create(PODS, pod("new", "data", affinity=elsewhere))
    await cluster.settle(5)
    volume = cluster.names(VOLUMES)[0]
    said = f'Multi-Attach error for volume "{volume}" Volume is already used by pod(s) old'
    assert events(cluster, "FailedAttachVolume") == [said]
    assert phase(cluster, PODS, "new") == "Pending"
    await cluster.delete(PODS, "old")
    await cluster.until(lambda: phase(cluster, PODS, "new") == "Running", 30)
    assert [one["spec"]["nodeName"] for one in cluster.all(ATTACHMENTS)] != [node]
    assert find_violations(nodes.storage.records) == []


@with_volumes()
async def test_an_attachment_stays_until_the_storage_has_detached(nodes):
    async def fails(*_):
        raise Unavailable("the storage does not answer")

    cluster, detach = nodes.cluster, nodes.storage.detach
    await cluster.create(CLAIMS, claim("data"))
    await cluster.create(PODS, pod("web", "data"))
    await cluster.until(lambda: phase(cluster, PODS, "web") == "Running", 20)
    nodes.storage.detach = fails
    await cluster.delete(PODS, "web")
    await cluster.settle(60)
    assert cluster.count(PODS) == 0
    assert cluster.count(ATTACHMENTS) == 1
    nodes.storage.detach = detach
    await cluster.until(lambda: cluster.count(ATTACHMENTS) == 0, 30)


async def silent_with_volume(nodes):
    """A node that is silent, whose pod is gone by force although the node may still run it."""
    cluster = nodes.cluster
    await cluster.create(CLAIMS, claim("data"))
    await cluster.create(PODS, pod("web", "data"))
    await cluster.until(lambda: phase(cluster, PODS, "web") == "Running", 20)
    node = cluster.get(PODS, "web")["spec"]["nodeName"]
    nodes.silent.add(node)
    await cluster.settle(60)
    await cluster.delete(PODS, "web", grace=0)
    return node


@with_volumes()
async def test_after_six_minutes_a_volume_is_torn_from_a_silent_node_which_may_still_write(nodes):
    cluster = nodes.cluster
    node = await silent_with_volume(nodes)
    await cluster.settle(355)
    assert cluster.count(ATTACHMENTS) == 1
    await cluster.until(lambda: cluster.count(ATTACHMENTS) == 0, 15)
    (violation,) = find_violations(nodes.storage.records)
    assert (violation.fault, violation.nodes) == (AccessFault.DETACHED_IN_USE, (node,))
    assert cluster.get(NODES, node)["status"].get("volumesAttached") in (None, [])


@with_volumes()
async def test_a_pod_that_is_only_marked_keeps_its_volume_on_a_silent_node(nodes):
    """The six minutes begin when no container runs any more, as far as the pod's status says."""
    cluster = nodes.cluster
    await cluster.create(CLAIMS, claim("data"))
    await cluster.create(PODS, pod("web", "data"))
    await cluster.until(lambda: phase(cluster, PODS, "web") == "Running", 20)
    nodes.silent.add(cluster.get(PODS, "web")["spec"]["nodeName"])
    await cluster.settle(60)
    await cluster.delete(PODS, "web")
    await cluster.settle(2000)
    assert cluster.count(ATTACHMENTS) == 1
    await cluster.delete(PODS, "web", grace=0)
    await cluster.until(lambda: cluster.count(ATTACHMENTS) == 0, 370)


@with_volumes(rules=DetachRules(force_on_timeout=False))
async def test_unless_that_is_switched_off(nodes):
    cluster = nodes.cluster
    node = await silent_with_volume(nodes)
    await cluster.settle(2000)
    assert cluster.count(ATTACHMENTS) == 1
    await nodes.back(node)
    await nodes.using(node)
    await cluster.until(lambda: cluster.count(ATTACHMENTS) == 0, 15)


@with_volumes()
async def test_a_node_that_is_out_of_service_loses_its_volumes_at_once(nodes):
    cluster = nodes.cluster
    node = await silent_with_volume(nodes)
    nodes.pull(node)
    await cluster.settle(20)
    assert cluster.count(ATTACHMENTS) == 1
    await cluster.patch(NODES, node, {"spec": {"taints": [OUT]}}, namespace="")
    await cluster.until(lambda: cluster.count(ATTACHMENTS) == 0, 5)
    assert find_violations(nodes.storage.records) == []


@with_volumes()
async def test_a_node_that_is_deleted_keeps_its_volumes_for_six_minutes(nodes):
    cluster = nodes.cluster
    node = await silent_with_volume(nodes)
    await cluster.settle(10)
    await cluster.delete(NODES, node, namespace="")
    await cluster.settle(340)
    assert cluster.count(ATTACHMENTS) == 1
    await cluster.until(lambda: cluster.count(ATTACHMENTS) == 0, 25)


def run(test):
    @functools.wraps(test)
    def main():
        virtual.run(test(Storage(InMemoryVolumes(), virtual.VirtualClock())))

    del main.__wrapped__
    return main


@run
async def test_what_a_node_can_write(storage):
    path = Path("/pods/u")
    with pytest.raises(Unavailable, match="does not have it attached"):
        await storage.mount("v", "n1", "u", path)
    await storage.attach("v", "n1", shared=False)
    with pytest.raises(Unavailable, match="has not mounted it"):
        await storage.write("v", "n1", "u", "log", b"x")
    await storage.mount("v", "n1", "u", path)
    await storage.write("v", "n1", "u", "log", b"one")
    await storage.cut("n1")
    with pytest.raises(Unavailable, match="cannot reach the storage"):
        await storage.write("v", "n1", "u", "log", b"two")
    await storage.mend("n1")
    await storage.write("v", "n1", "u", "log", b"three")
    storage.drop_mounts("n1")
    assert storage.mounts_of("n1") == []
    with pytest.raises(Unavailable, match="has not mounted it"):
        await storage.write("v", "n1", "u", "log", b"off")
    await storage.mount("v", "n1", "u", path)
    await storage.detach("v", "n1")
    with pytest.raises(Unavailable, match="does not have it attached"):
        await storage.write("v", "n1", "u", "log", b"four")
    assert await storage._shelf.read("v", "log") == b"one\nthree\n"
    whats = [one.what for one in storage.records]
    assert whats.count(VolumeEventType.FAILED) == 4
    assert [one.fault for one in find_violations(storage.records)] == [AccessFault.DETACHED_IN_USE]


def record(what, node, pod="", *, volume="v", **more):
    return VolumeEvent(at=0.0, what=what, node=node, volume=volume, pod=pod, **more)


A, B = "n1", "n2"
AT_A, AT_B = record(VolumeEventType.ATTACHED, A), record(VolumeEventType.ATTACHED, B)
ON_A, ON_B = record(VolumeEventType.MOUNTED, A, "a"), record(VolumeEventType.MOUNTED, B, "b")


@pytest.mark.parametrize(
    ("records", "faults"),
    [
        ([AT_A, ON_A, record(VolumeEventType.UNMOUNTED, A, "a"), record(VolumeEventType.DETACHED, A), AT_B, ON_B], []),
        ([AT_A, ON_A, record(VolumeEventType.DETACHED, A), AT_B, ON_B], [AccessFault.DETACHED_IN_USE]),
        ([AT_A, ON_A, AT_B, ON_B], [AccessFault.TWO_WRITERS]),
        ([AT_A, AT_B, ON_A], []),
        ([AT_A, ON_A, AT_B, record(VolumeEventType.MOUNTED, B, "b", read_only=True)], []),
        ([AT_A, ON_A, record(VolumeEventType.ATTACHED, B, shared=True), ON_B], []),
        ([AT_A, ON_A, record(VolumeEventType.OFF, A, volume=""), record(VolumeEventType.DETACHED, A), AT_B, ON_B], []),
        ([AT_A, ON_A, record(VolumeEventType.CUT, A, volume=""), record(VolumeEventType.DETACHED, A), AT_B, ON_B], []),
        (
            [
                AT_A,
                ON_A,
                record(VolumeEventType.CUT, A, volume=""),
                AT_B,
                ON_B,
                record(VolumeEventType.MENDED, A, volume=""),
            ],
            [AccessFault.TWO_WRITERS],
        ),
        (
            [AT_A, ON_A, AT_B, ON_B, record(VolumeEventType.WROTE, A, "a"), record(VolumeEventType.WROTE, B, "b")],
            [AccessFault.TWO_WRITERS],
        ),
        (
            [
                AT_A,
                ON_A,
                AT_B,
                ON_B,
                record(VolumeEventType.CUT, A, volume=""),
                record(VolumeEventType.MENDED, A, volume=""),
            ],
            [AccessFault.TWO_WRITERS, AccessFault.TWO_WRITERS],
        ),
    ],
)
def test_what_must_never_happen(records, faults):
    assert [one.fault for one in find_violations(records)] == faults


@with_volumes()
async def test_an_attachment_that_somebody_else_has_made_is_left_alone(nodes):
    cluster = nodes.cluster
    await cluster.create(CLAIMS, claim("data"))
    await cluster.create(PODS, pod("web", "data"))
    await cluster.until(lambda: phase(cluster, PODS, "web") == "Running", 20)
    node, volume = cluster.get(PODS, "web")["spec"]["nodeName"], cluster.names(VOLUMES)[0]
    other = next(name for name in ("n1", "n2") if name != node)
    spec = {"attacher": DRIVER, "nodeName": other, "source": {"persistentVolumeName": volume}}
    await cluster.create(ATTACHMENTS, {"metadata": {"name": "mine"}, "spec": spec}, namespace="")
    await cluster.settle(500)
    assert cluster.count(ATTACHMENTS) == 2
