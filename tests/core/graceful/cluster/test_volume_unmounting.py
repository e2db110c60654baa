"""The volumes of one node unmounted, in virtual time: drivers that hang, fail, lie and are gone; a killed agent."""

import asyncio

import pytest

from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall.graceful.cluster.volume_unmounting import PATIENCE_SECONDS, VolumeUnmounting
from lastcall_lab import virtual
from lastcall_lab.fakes.node_volumes import FakeNodeVolumes

UNPUBLISH, UNSTAGE = "NodeUnpublishVolume", "NodeUnstageVolume"


class Node:
    def __init__(self):
        self.clock = virtual.VirtualClock()
        self.volumes = FakeNodeVolumes(self.clock)
        self.unmounting = VolumeUnmounting(self.volumes, self.clock)

    async def unmount(self, uid, until=100.0):
        return await self.unmounting.unmount_pod(uid, until)


def on_node(test):
    def run():
        virtual.run(test(Node()))

    run.__name__ = test.__name__
    return run


@on_node
async def test_a_volume_is_unpublished_unstaged_and_forgotten(node):
    volume = node.volumes.mount("u1", "pv-1", "vol-1", subpath=True)
    [done] = await node.unmount("u1")
    assert (done.volume, done.problem, done.is_released) == (volume, "", True)
    assert node.volumes.calls == [(UNPUBLISH, "vol-1"), (UNSTAGE, "vol-1")]
    assert await node.volumes.list_volumes("u1") == ()
    assert await node.unmounting.is_released(volume)


@on_node
async def test_a_volume_that_another_pod_uses_stays_staged(node):
    volume = node.volumes.mount("u1", "pv-1", "vol-1")
    node.volumes.mount("u2", "pv-1", "vol-1")
    [done] = await node.unmount("u1")
    assert (done.problem, done.is_released) == ("", False)
    assert node.volumes.calls == [(UNPUBLISH, "vol-1")]
    assert not await node.unmounting.is_released(volume)
    [last] = await node.unmount("u2")
    assert last.is_released
    assert node.volumes.calls[-1] == (UNSTAGE, "vol-1")


@on_node
async def test_two_pods_that_end_together_release_their_volume_once(node):
    node.volumes.seconds = 0.2
    for uid in ("u1", "u2"):
        node.volumes.mount(uid, "pv-1", "vol-1")
    ended = await asyncio.gather(node.unmount("u1"), node.unmount("u2"))
    assert sorted(one.is_released for [one] in ended) == [False, True]
    assert [call for call, _ in node.volumes.calls] == [UNPUBLISH, UNPUBLISH, UNSTAGE]


@pytest.mark.parametrize("method", [UNPUBLISH, UNSTAGE])
@pytest.mark.parametrize(
    ("verb", "words"),
    [("fail", "the device is busy"), ("lie", "has answered OK"), ("gone", "connection refused")],
)
def test_a_driver_that_does_not_unmount_is_given_up(method, verb, words):
    async def scene():
        node = Node()
        volume = node.volumes.mount("u1", "pv-1", "vol-1")
        node.volumes.behaviour[method] = verb
        [left] = await node.unmount("u1")
        assert words in left.problem
        assert not left.is_released
        assert PATIENCE_SECONDS - 2 < node.clock.boottime() <= PATIENCE_SECONDS
        assert await node.volumes.list_volumes("u1") == (volume,)
        assert not await node.unmounting.is_released(volume)

    virtual.run(scene())


@on_node
async def test_a_driver_that_hangs_has_until_the_end_of_the_shutdown(node):
    node.volumes.mount("u1", "pv-1", "vol-1")
    node.volumes.behaviour[UNSTAGE] = "hang"
    [left] = await node.unmount("u1", until=30.0)
    assert "not answered in time" in left.problem
    assert node.clock.boottime() == 30.0


@on_node
async def test_a_driver_that_fails_at_first_is_asked_again(node):
    node.volumes.mount("u1", "pv-1", "vol-1")
    node.volumes.behaviour[UNPUBLISH] = "fail"
    unmounting = asyncio.ensure_future(node.unmount("u1"))
    await node.clock.sleep(2.5)
    node.volumes.behaviour.clear()
    [done] = await unmounting
    assert done.is_released


@on_node
async def test_a_mount_elsewhere_holds_the_volume_until_it_is_gone(node):
    node.volumes.mount("u1", "pv-1", "vol-1")
    node.volumes.mount_elsewhere("vol-1", "/mnt")
    unmounting = asyncio.ensure_future(node.unmount("u1"))
    await node.clock.sleep(3)
    assert node.volumes.calls == [(UNPUBLISH, "vol-1"), (UNSTAGE, "vol-1")]
    assert not unmounting.done()
    node.volumes.unmount_elsewhere("vol-1")
    [done] = await unmounting
    assert done.is_released


@on_node
async def test_a_volume_of_another_kind_is_given_up_at_once_and_the_others_are_unmounted(node):
    node.volumes.mount("u1", "share", "", problem="the agent cannot unmount volumes of kubernetes.io/nfs")
    node.volumes.mount("u1", "pv-1", "vol-1")
    share, done = await node.unmount("u1")
    assert "kubernetes.io/nfs" in share.problem
    assert done.is_released
    assert node.clock.boottime() == 0.0


@on_node
async def test_a_hanging_driver_of_one_pod_does_not_hold_up_another(node):
    node.volumes.mount("u1", "pv-1", "vol-1")
    node.volumes.behaviour[UNPUBLISH] = "hang"
    hanging = asyncio.ensure_future(node.unmount("u1"))
    await node.clock.sleep(0.1)
    node.volumes.behaviour.clear()
    node.volumes.mount("u2", "pv-2", "vol-2")
    [done] = await node.unmount("u2")
    assert done.is_released
    assert not hanging.done()
    await cancel_and_wait(hanging)


@pytest.mark.parametrize("killed_in", [UNPUBLISH, UNSTAGE])
def test_an_agent_that_is_killed_between_two_steps_is_resumed_by_the_next_one(killed_in):
    async def scene():
        node = Node()
        node.volumes.mount("u1", "pv-1", "vol-1")
        node.volumes.behaviour[killed_in] = "hang"
        first = asyncio.ensure_future(node.unmount("u1"))
        await node.clock.sleep(0.1)
        await cancel_and_wait(first)
        node.volumes.behaviour.clear()
        node.unmounting = VolumeUnmounting(node.volumes, node.clock)
        [done] = await node.unmount("u1")
        assert (done.problem, done.is_released) == ("", True)
        assert node.volumes.calls[-2:] == [(UNPUBLISH, "vol-1"), (UNSTAGE, "vol-1")]

    virtual.run(scene())


@on_node
async def test_a_pod_without_a_directory_is_not_taken_for_unmounted(node):
    with pytest.raises(Unavailable):
        await node.unmount("u1")


@on_node
async def test_nothing_is_called_after_the_shutdowns_time(node):
    node.volumes.mount("u1", "pv-1", "vol-1")
    [left] = await node.unmount("u1", until=0.0)
    assert "time of the shutdown is over" in left.problem
    assert node.volumes.calls == []
