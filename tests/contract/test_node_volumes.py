"""What a node's volumes promise: with a real CSI driver and real mounts, and in memory."""

import os

import pytest
from support.common.loop_devices import uses_loop_devices
from support.csi.volume_worlds import FakeVolumeWorld, RealVolumeWorld

from lastcall.errors import Unavailable

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting file systems needs root")


@pytest.fixture(params=["memory", pytest.param("driver", marks=needs_root)])
def world(request):
    made = FakeVolumeWorld() if request.param == "memory" else RealVolumeWorld()
    yield made
    made.close()


async def test_a_mounted_volume_is_listed_with_driver_and_handle(world):
    volume = await world.mount("u1", "pv-1", "vol-1")
    assert list(await world.volumes.list_volumes("u1")) == [volume]
    assert volume.unique_name == f"kubernetes.io/csi/{volume.driver}^vol-1"
    assert (volume.problem, volume.inline) == ("", False)


async def test_the_volumes_of_a_pod_without_a_directory_are_not_known(world):
    with pytest.raises(Unavailable, match="u9"):
        await world.volumes.list_volumes("u9")


async def test_the_state_shows_both_mounts(world):
    state = await world.volumes.read_state(await world.mount("u1", "pv-1", "vol-1"))
    assert state.target.endswith("mount")
    assert state.stage.endswith("globalmount")
    assert state.has_stage
    assert len(state.filesystems) == 1
    assert (state.users, state.elsewhere, state.subpaths) == ((), (), ())


async def test_each_step_may_be_repeated(world):
    volume = await world.mount("u1", "pv-1", "vol-1")
    for _ in range(2):
        await world.volumes.unpublish(volume, 60)
        state = await world.volumes.read_state(volume)
        assert state.target == ""
        assert state.stage
    for _ in range(2):
        await world.volumes.unstage(volume, 60)
        state = await world.volumes.read_state(volume)
        assert (state.target, state.stage) == ("", "")
        assert state.has_stage
    assert list(await world.volumes.list_volumes("u1")) == [volume]
    for _ in range(2):
        await world.volumes.forget(volume, staged=True)
        assert list(await world.volumes.list_volumes("u1")) == []
        assert not (await world.volumes.read_state(volume)).has_stage
    assert world.calls == [("NodeUnpublishVolume", "vol-1")] * 2 + [("NodeUnstageVolume", "vol-1")] * 2


async def test_nothing_that_is_mounted_is_removed(world):
    volume = await world.mount("u1", "pv-1", "vol-1")
    with pytest.raises(Unavailable):
        await world.volumes.forget(volume, staged=True)
    await world.volumes.unpublish(volume, 60)
    with pytest.raises(Unavailable):
        await world.volumes.forget(volume, staged=True)
    assert list(await world.volumes.list_volumes("u1")) == [volume]
    assert (await world.volumes.read_state(volume)).stage


async def test_other_pods_of_a_volume_are_its_users_until_they_are_forgotten(world):
    first, second = await world.mount("u1", "pv-1", "vol-1"), await world.mount("u2", "pv-1", "vol-1")
    other = await world.mount("u3", "pv-3", "vol-3")
    assert (await world.volumes.read_state(first)).users == ("u2",)
    assert (await world.volumes.read_state(other)).users == ()
    await world.volumes.unpublish(second, 60)
    await world.volumes.forget(second, staged=False)
    state = await world.volumes.read_state(first)
    assert state.users == ()
    assert state.target
    assert state.stage


async def test_sub_paths_are_unmounted(world):
    volume = await world.mount("u1", "pv-1", "vol-1", subpath=True)
    state = await world.volumes.read_state(volume)
    assert len(state.subpaths) == 1
    assert state.elsewhere == ()
    await world.volumes.unmount_subpaths(state.subpaths)
    assert (await world.volumes.read_state(volume)).subpaths == ()
    await world.volumes.unpublish(volume, 60)
    await world.volumes.forget(volume, staged=False)
    assert list(await world.volumes.list_volumes("u1")) == []


@uses_loop_devices
async def test_a_block_device_is_unmapped_step_by_step(world):
    volume = await world.mount("u1", "pv-1", "vol-1", block=True)
    assert list(await world.volumes.list_volumes("u1")) == [volume]
    assert (volume.is_block, volume.problem) == (True, "")
    state = await world.volumes.read_state(volume)
    assert len(state.subpaths) == len(state.filesystems) == 1
    assert state.target
    assert state.has_stage
    assert (state.users, state.elsewhere) == ((), ())
    await world.volumes.unmount_subpaths(state.subpaths)
    assert (await world.volumes.read_state(volume)).subpaths == ()
    for _ in range(2):
        await world.volumes.unpublish(volume, 60)
        assert (await world.volumes.read_state(volume)).target == ""
    for _ in range(2):
        await world.volumes.unstage(volume, 60)
        assert (await world.volumes.read_state(volume)).has_stage
    for _ in range(2):
        await world.volumes.forget(volume, staged=True)
        assert list(await world.volumes.list_volumes("u1")) == []
        assert not (await world.volumes.read_state(volume)).has_stage


async def test_a_mount_of_its_file_system_elsewhere_is_seen_also_after_its_own_mounts(world):
    volume = await world.mount("u1", "pv-1", "vol-1")
    path = await world.mount_elsewhere(volume)
    known = (await world.volumes.read_state(volume)).filesystems
    await world.volumes.unpublish(volume, 60)
    await world.volumes.unstage(volume, 60)
    assert (await world.volumes.read_state(volume, known)).elsewhere == (path,)
    assert (await world.volumes.read_state(volume)).elsewhere == ()


async def test_an_inline_volume_has_no_stage_and_is_not_attached(world):
    volume = await world.mount("u1", "secrets", "csi-1", inline=True)
    assert (volume.inline, volume.unique_name) == (True, "")
    assert not (await world.volumes.read_state(volume)).has_stage
    await world.volumes.unpublish(volume, 60)
    assert (await world.volumes.read_state(volume)).target == ""


@pytest.mark.parametrize("method", ["NodeUnpublishVolume", "NodeUnstageVolume"])
@pytest.mark.parametrize(("verb", "words"), [("fail", "the device is busy"), ("hang", "not answered in time")])
async def test_a_driver_that_fails_or_hangs(world, method, verb, words):
    volume = await world.mount("u1", "pv-1", "vol-1")
    if method == "NodeUnstageVolume":
        await world.volumes.unpublish(volume, 60)
    world.behave(method, verb)
    step = world.volumes.unpublish if method == "NodeUnpublishVolume" else world.volumes.unstage
    with pytest.raises(Unavailable, match=words):
        await step(volume, 0.3 if verb == "hang" else 60)


async def test_a_driver_that_lies_leaves_the_mount(world):
    volume = await world.mount("u1", "pv-1", "vol-1")
    world.behave("NodeUnpublishVolume", "lie")
    await world.volumes.unpublish(volume, 60)
    assert (await world.volumes.read_state(volume)).target


async def test_a_driver_that_is_gone(world):
    volume = await world.mount("u1", "pv-1", "vol-1")
    world.stop_driver()
    with pytest.raises(Unavailable, match=volume.driver):
        await world.volumes.unpublish(volume, 60)
    assert (await world.volumes.read_state(volume)).target
