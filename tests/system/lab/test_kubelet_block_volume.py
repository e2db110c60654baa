"""A process as a pod with a block volume of a real CSI driver."""

import asyncio
import os
from pathlib import Path

import pytest
from support.csi.volume_worlds import RealVolumeWorld
from support.lab.real_node import RealNode, ready

from lastcall.adapters.csi.loop_devices import list_loop_devices
from lastcall.adapters.kube.resources import CLAIMS, NODES, PODS, VOLUMES
from lastcall_lab.fakes.node_volumes import DRIVER
from lastcall_lab.kubelet.volumes.csi_volumes import CsiNodeDriver

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting file systems needs root"),
    pytest.mark.skipif(not Path("/dev/loop-control").exists(), reason="block devices of the tests are loop devices"),
]
ATTACHED = {"name": f"kubernetes.io/csi/{DRIVER}^vol-1", "devicePath": ""}


@pytest.fixture
async def node():
    world = RealVolumeWorld()
    node = RealNode(world.root)
    node.world, node.options["volumes"] = world, CsiNodeDriver(world.root, node.client)
    await node.begin()
    try:
        yield node
    finally:
        await node.end()
        world.close()


async def make_claim(node):
    """The claim ``raw``, bound to a volume that is attached to the node."""
    spec = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block", "storageClassName": ""}
    wanted = {**spec, "resources": {"requests": {"storage": "1Mi"}}, "volumeName": "pv-1"}
    made = await node.client.create(CLAIMS, {"metadata": {"name": "raw"}, "spec": wanted}, namespace="default")
    about = {
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "raw",
        "uid": made["metadata"]["uid"],
    }
    volume = {**spec, "capacity": {"storage": "1Mi"}, "csi": {"driver": DRIVER, "volumeHandle": "vol-1"}}
    await node.client.create(VOLUMES, {"metadata": {"name": "pv-1"}, "spec": {**volume, "claimRef": about}})
    bound = {"status": {"phase": "Bound"}}
    await node.client.patch(CLAIMS, "raw", bound, namespace="default", subresource="status")
    await node.client.patch(NODES, "n1", {"status": {"volumesAttached": [ATTACHED]}}, subresource="status")


async def test_it_has_the_device_until_it_ends(node):
    await make_claim(node)
    await node.create(
        "web",
        "echo hello | dd of=$VOLUME_RAW conv=notrunc,fsync && while :; do sleep 0.1; done",
        container={"volumeDevices": [{"name": "raw", "devicePath": "/dev/raw"}]},
        volumes=[{"name": "raw", "persistentVolumeClaim": {"claimName": "raw"}}],
    )
    await node.until(ready)
    image = node.world.directory / "vol-1.img"
    while not image.read_bytes().startswith(b"hello\n"):
        await node.clock.sleep(0.05)
    assert await asyncio.to_thread(list_loop_devices, [str(image)])
    await node.client.delete(PODS, "web", namespace="default")
    await node.gone()
    assert node.world.calls == [("NodeUnpublishVolume", "vol-1"), ("NodeUnstageVolume", "vol-1")]
    assert await asyncio.to_thread(list_loop_devices, [str(image)]) == []
    found = await node.client.get(NODES, "n1")
    assert not found["status"].get("volumesInUse")
