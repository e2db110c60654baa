"""The lab's kubelet mounts and unmounts by CSI: a real driver, real mounts, and the directories of a real kubelet."""

import asyncio
import os

import pytest
from support.common.loop_devices import uses_loop_devices
from support.csi.volume_worlds import RealVolumeWorld

from lastcall.adapters.csi.loop_devices import list_loop_devices
from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import Unavailable
from lastcall.graceful.cluster.volume_unmounting import VolumeUnmounting
from lastcall_lab.fakes.node_volumes import DRIVER
from lastcall_lab.kubelet.volumes.csi_volumes import CsiNodeDriver
from lastcall_lab.kubelet.volumes.pod_directories import PodDirectories

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting file systems needs root")

CLAIM = {"spec": {"volumeName": "pv-1"}}
BLOCK = {"spec": {"volumeName": "pv-1", "volumeMode": "Block"}}


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

    async def mount(self, uid, claim=CLAIM):
        record = {"driverName": DRIVER, "volumeHandle": "vol-1", "claim": claim}
        path = await asyncio.to_thread(self.directories.record_mount, uid, "data", record)
        await self.driver.mount(self.pod(uid), claim, path)
        return path

    async def unmount(self, uid, claim=CLAIM):
        await self.driver.unmount(self.pod(uid), claim, self.directories.volume_path(uid, "data"))
        await asyncio.to_thread(self.directories.forget_mount, uid, "data")

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


@uses_loop_devices
async def test_a_block_device_is_mapped_where_the_agent_looks_for_it(node):
    path = await node.mount("u1", BLOCK)
    assert path.is_block_device()
    state = await node.state("u1")
    assert state.target
    assert len(state.subpaths) == 1
    assert len(await asyncio.to_thread(list_loop_devices, state.subpaths)) == 1, "which keeps it open"
    assert state.has_stage
    await node.mount("u1", BLOCK)
    assert await node.state("u1") == state, "a kubelet may do it again"


@uses_loop_devices
async def test_the_last_pod_unstages_a_block_device(node):
    await node.mount("u1", BLOCK)
    await node.mount("u2", BLOCK)
    await node.unmount("u1", BLOCK)
    assert node.world.calls == [("NodeUnpublishVolume", "vol-1")]
    assert (await node.state("u2")).target
    await node.unmount("u2", BLOCK)
    assert node.world.calls[1:] == [("NodeUnpublishVolume", "vol-1"), ("NodeUnstageVolume", "vol-1")]
    for uid in ("u1", "u2"):
        assert await node.world.volumes.list_volumes(uid) == []
        assert node.directories.mount_records(uid) == {}


@uses_loop_devices
async def test_a_block_device_that_the_agent_has_unmapped_is_not_mapped_for_the_kubelet_either(node):
    await node.mount("u1", BLOCK)
    assert list(node.directories.mount_records("u1")) == ["data"]
    clock = SystemClock()
    [done] = await VolumeUnmounting(node.world.volumes, clock).unmount_pod("u1", clock.boottime() + 60)
    assert (done.problem, done.is_released) == ("", True)
    assert node.directories.mount_records("u1") == {}
    calls = list(node.world.calls)
    await node.unmount("u1", BLOCK)
    assert node.world.calls == calls
