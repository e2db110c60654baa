"""Volumes of a node that shuts down: when pods' objects go, what the Node lists, and what the report says."""

import asyncio

from support.agents.face_cluster import in_cluster

from lastcall.adapters.kube.resources import ATTACHMENTS, NODES
from lastcall.graceful.cluster.volume_release import HELD_UP_SECONDS
from lastcall.model.pods import ObjectMetadata, Pod
from lastcall.model.volumes import attachment_name
from lastcall.ports.node import RunningPod
from lastcall_lab.fakes.node_volumes import DRIVER

CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}]
OTHER = "kubernetes.io/csi/other.example.com^vol-9"


async def make_database(cluster, name="db", handle="vol-1", **options):
    """A pod of a StatefulSet with a mounted and attached volume, whose termination has begun."""
    live = await cluster.make_pod(name, owner="StatefulSet", volumes=CLAIM)
    volume = cluster.volumes.mount(live.pod.metadata.uid, f"pv-{handle}", handle, **options)
    body = {
        "metadata": {"name": attachment_name(DRIVER, handle, "n1")},
        "spec": {"attacher": DRIVER, "nodeName": "n1", "source": {"persistentVolumeName": volume.name}},
    }
    await cluster.admin.create(ATTACHMENTS, body)
    await set_in_use(cluster, *await in_use(cluster), OTHER, volume.unique_name)
    await cluster.face.begin_pod(live, 5.0, 1.0)
    return live


async def set_in_use(cluster, *names):
    body = {"status": {"volumesInUse": sorted(set(names))}}
    await cluster.admin.patch(NODES, "n1", body, subresource="status")


async def in_use(cluster):
    return (await cluster.node())["status"].get("volumesInUse", [])


async def detach(cluster, handle="vol-1"):
    await cluster.admin.delete(ATTACHMENTS, attachment_name(DRIVER, handle, "n1"))


@in_cluster
async def test_an_unmounted_pod_goes_and_its_volume_is_released(cluster):
    await cluster.begin_shutdown()
    live = await make_database(cluster)
    assert await cluster.face.report_pod_ended(live, {"main": 0}) is True
    await cluster.face.report_finished()
    assert not await cluster.exists("db")
    assert await in_use(cluster) == [OTHER]
    assert cluster.face.take_notes() == []


@in_cluster
async def test_the_object_stays_as_long_as_the_volume_is_mounted(cluster):
    await cluster.face.begin_shutdown(100)
    live = await make_database(cluster)
    cluster.volumes.behaviour["NodeUnstageVolume"] = "hang"
    ended = asyncio.ensure_future(cluster.face.report_pod_ended(live, {"main": 0}))
    await cluster.clock.sleep(5)
    assert not ended.done()
    assert (await cluster.pod("db"))["status"]["phase"] == "Failed"
    assert len(await in_use(cluster)) == 2
    cluster.volumes.behaviour.clear()
    await cluster.clock.sleep(100)
    assert await ended is False
    assert await cluster.exists("db")
    assert len(await in_use(cluster)) == 2
    first, second = cluster.face.take_notes()
    assert first.startswith("a volume of default/db stays mounted: pv-vol-1 (csi.example.com): ")
    assert "NodeUnstageVolume" in first
    assert second == "the object of default/db stays, because its volumes are not known to be unmounted"


@in_cluster
async def test_a_pod_that_keeps_its_object_keeps_its_volume(cluster):
    await cluster.face.begin_shutdown(100)
    live = await cluster.make_pod("agent", owner="DaemonSet", volumes=CLAIM)
    cluster.volumes.mount(live.pod.metadata.uid, "pv-1", "vol-1")
    await cluster.face.begin_pod(live, 5.0, 1.0)
    assert await cluster.face.report_pod_ended(live, {"main": 0}) is False
    assert cluster.volumes.calls == []


@in_cluster
async def test_a_pod_without_volumes_is_proved_unmounted_by_its_directory(cluster):
    await cluster.face.begin_shutdown(100)
    live = await cluster.make_pod("web")
    await cluster.face.begin_pod(live, 5.0, 1.0)
    await cluster.clock.sleep(0.1)
    cluster.volumes.add_pod(live.pod.metadata.uid)
    assert await cluster.face.report_pod_ended(live, {"main": 0}) is True


@in_cluster
async def test_a_pod_whose_deletion_is_not_accepted_is_not_recorded_as_unmounted(cluster):
    await cluster.face.begin_shutdown(100)
    live = await cluster.make_pod("db", owner="StatefulSet", volumes=CLAIM)
    cluster.volumes.mount(live.pod.metadata.uid, "pv-1", "vol-1")
    cluster.down = True
    await cluster.face.begin_pod(live, 5.0, 1.0)
    assert await cluster.face.report_pod_ended(live, {"main": 0}) is False
    assert cluster.volumes.calls[-1] == ("NodeUnstageVolume", "vol-1")
    cluster.down = False
    await cluster.clock.sleep(3)
    assert not await cluster.exists("db")


@in_cluster
async def test_a_volume_whose_attachment_stays_is_named(cluster):
    await cluster.face.begin_shutdown(100)
    live = await make_database(cluster)
    await cluster.face.report_pod_ended(live, {"main": 0})
    await cluster.clock.sleep(HELD_UP_SECONDS + 1)
    await cluster.face.report_finished()
    [note] = cluster.face.take_notes()
    assert "pv-vol-1 (csi.example.com) is unmounted, but its VolumeAttachment" in note


@in_cluster
async def test_a_volume_that_is_detached_is_not_named(cluster):
    await cluster.face.begin_shutdown(100)
    live = await make_database(cluster)
    await cluster.face.report_pod_ended(live, {"main": 0})
    await cluster.clock.sleep(1)
    await detach(cluster)
    await cluster.clock.sleep(HELD_UP_SECONDS)
    await cluster.face.report_finished()
    assert cluster.face.take_notes() == []


@in_cluster
async def test_a_name_that_a_kubelet_adds_between_read_and_write_is_not_lost(cluster):
    await cluster.face.begin_shutdown(100)
    live = await make_database(cluster)
    added = "kubernetes.io/csi/other.example.com^vol-8"
    send, reads = cluster.request, []

    async def request(method, target, *rest, **options):
        answer = await send(method, target, *rest, **options)
        if method == "GET" and target == "/api/v1/nodes/n1" and not reads:
            reads.append(target)
            await set_in_use(cluster, *await in_use(cluster), added)
        return answer

    cluster.request = request
    await cluster.face.report_pod_ended(live, {"main": 0})
    await cluster.face.report_finished()
    assert reads
    assert await in_use(cluster) == [added, OTHER]


@in_cluster
async def test_volumes_of_pods_that_end_together_are_released_together(cluster):
    await cluster.begin_shutdown()
    lives = [await make_database(cluster, f"db-{number}", f"vol-{number}") for number in range(5)]
    cluster.slow = 0.1
    cluster.asked.clear()
    await asyncio.gather(*(cluster.face.report_pod_ended(live, {"main": 0}) for live in lives))
    await cluster.face.report_finished()
    assert await in_use(cluster) == [OTHER]
    writes = [path for _, method, path in cluster.asked if method == "PATCH" and path.endswith("/nodes/n1/status")]
    assert 1 <= len(writes) <= 2


@in_cluster
async def test_a_volume_that_a_kubelet_has_mounted_again_is_not_released(cluster):
    await cluster.face.begin_shutdown(100)
    live = await make_database(cluster)
    cluster.down = True
    await cluster.face.report_pod_ended(live, {"main": 0})
    cluster.volumes.mount("u-new", "pv-vol-1", "vol-1")
    cluster.down = False
    await cluster.clock.sleep(5)
    assert len(await in_use(cluster)) == 2


@in_cluster
async def test_a_driver_gets_sigterm_when_the_volumes_are_unmounted(cluster):
    await cluster.face.begin_shutdown(100)
    host = [{"name": "socket", "hostPath": {"path": f"/var/lib/kubelet/plugins/{DRIVER}"}}]
    driver = await cluster.make_pod("driver", owner="DaemonSet", volumes=host)
    begun = asyncio.ensure_future(cluster.face.begin_pod(driver, 30.0, 20.0))
    live = await make_database(cluster)
    await cluster.clock.sleep(3)
    assert not begun.done()
    cluster.volumes.seconds = 1.0
    await cluster.face.report_pod_ended(live, {"main": 0})
    await cluster.clock.sleep(0.01)
    assert begun.done()


@in_cluster
async def test_a_driver_waits_for_volumes_until_its_own_time_is_short(cluster):
    await cluster.face.begin_shutdown(100)
    await make_database(cluster)
    host = [{"name": "socket", "hostPath": {"path": "/var/lib/kubelet/plugins_registry"}}]
    driver = await cluster.make_pod("driver", owner="DaemonSet", volumes=host)
    await cluster.face.begin_pod(driver, 30.0, 20.0)
    assert cluster.clock.boottime() == 20.0


@in_cluster
async def test_a_resumed_agent_finishes_a_pod_that_has_ended(cluster):
    await cluster.face.begin_shutdown(100)
    live = await make_database(cluster)
    await cluster.face.close()
    cluster.face = cluster.new_face()
    cluster.known_pods[live.pod.metadata.uid] = live.pod
    await cluster.face.begin_shutdown(100)
    known = live.pod.metadata
    bare = Pod(metadata=ObjectMetadata(name=known.name, namespace=known.namespace, uid=known.uid))
    bare = RunningPod(pod=bare, containers={})
    await cluster.face.report_pod_ended(bare, {})
    await cluster.face.report_finished()
    assert not await cluster.exists("db")
    assert await in_use(cluster) == [OTHER]


@in_cluster
async def test_nothing_is_released_after_a_cancel(cluster):
    await cluster.face.begin_shutdown(100)
    live = await make_database(cluster)
    cluster.volumes.behaviour["NodeUnpublishVolume"] = "hang"
    ended = asyncio.ensure_future(cluster.face.report_pod_ended(live, {"main": 0}))
    await cluster.clock.sleep(1)
    await cluster.face.mark_ready()
    assert await ended is False
    await cluster.clock.sleep(100)
    assert len(await in_use(cluster)) == 2
    assert cluster.volumes.calls == [("NodeUnpublishVolume", "vol-1")]
