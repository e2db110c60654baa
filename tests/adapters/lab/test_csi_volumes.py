"""The lab's kubelet mounts and unmounts by CSI: a real driver, real mounts, and the directories of a real kubelet."""

import asyncio
import os

import pytest
from support.csi.volume_worlds import RealVolumeWorld

from lastcall.errors import Unavailable
from lastcall_lab.fakes.node_volumes import DRIVER
from lastcall_lab.kubelet.volumes.csi_volumes import CsiNodeDriver
from lastcall_lab.kubelet.volumes.pod_directories import PodDirectories

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting file systems needs root")

CLAIM = {"spec": {"volumeName": "pv-1"}}


class Client:
    """Knows one volume."""

    async def get(self, kind, name):
        return {"metadata": {"name": name}, "spec": {"csi": {"driver": DRIVER, "volumeHandle": "vol-1"}}}


class Node:
    """What a kubelet has of a volume of its pods."""

    def __init__(self, world):
        self.world = world
        self.directories = PodDirectories(world.root / "pods")
        self.driver = CsiNodeDriver(world.root, Client())

    def pod(self, uid):
        return {"metadata": {"uid": uid}}

    async def mount(self, uid):
        record = {"driverName": DRIVER, "volumeHandle": "vol-1"}
        path = await asyncio.to_thread(self.directories.record_mount, uid, "data", record)
        await self.driver.mount(self.pod(uid), CLAIM, path)
        return path

    async def unmount(self, uid):
        await self.driver.unmount(self.pod(uid), CLAIM, self.directories.volume_path(uid, "data"))

    async def state(self, uid):
        """As the agent sees it."""
        [volume] = await self.world.volumes.list_volumes(uid)
        return await self.world.volumes.read_state(volume)


@pytest.fixture
def node():
    world = RealVolumeWorld()
    yield Node(world)
    world.close()


async def test_a_mounted_volume_is_where_the_agent_looks_for_it(node):
    path = await node.mount("u1")
    state = await node.state("u1")
    assert state.target == str(path)
    assert state.stage.endswith("globalmount")


async def test_the_last_pod_unstages_it_and_nothing_is_left(node):
    await node.mount("u1")
    await node.mount("u2")
    await node.unmount("u1")
    assert (await node.state("u2")).stage
    await node.unmount("u2")
    assert node.world.calls == [
        ("NodeUnpublishVolume", "vol-1"),
        ("NodeUnpublishVolume", "vol-1"),
        ("NodeUnstageVolume", "vol-1"),
    ]
    assert not node.directories.mount_records("u1")
    assert [*(node.world.root / "plugins/kubernetes.io/csi" / DRIVER).iterdir()] == []


async def test_what_the_agent_has_unmounted_is_not_mounted_for_the_kubelet_either(node):
    await node.mount("u1")
    [volume] = await node.world.volumes.list_volumes("u1")
    await node.world.volumes.unpublish(volume, 60)
    await node.world.volumes.unstage(volume, 60)
    await node.world.volumes.forget(volume, staged=True)
    assert not node.directories.mount_records("u1")
    await node.unmount("u1")
    assert len(node.world.calls) == 2, "those of the agent"


async def test_a_driver_that_fails_leaves_the_record(node):
    await node.mount("u1")
    node.world.behave("NodeUnpublishVolume", "fail")
    with pytest.raises(Unavailable, match="the device is busy"):
        await node.unmount("u1")
    assert node.directories.mount_records("u1")
