"""CSI volumes with a real driver and real mounts: what only these show."""

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support.common.loop_devices import uses_loop_devices
from support.csi.volume_worlds import RealVolumeWorld, ThisHost

from lastcall.adapters.csi.kubelet_directories import KubeletDirectories
from lastcall.adapters.csi.node_volumes import CsiNodeVolumes
from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import Unavailable
from lastcall.graceful.cluster.volume_unmounting import VolumeUnmounting

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting file systems needs root")

LOOK = """
import asyncio, sys
from lastcall.adapters.csi.kubelet_directories import KubeletDirectories
from lastcall.adapters.csi.node_volumes import CsiNodeVolumes
from lastcall.adapters.host.clock import SystemClock
from lastcall.graceful.cluster.volume_unmounting import VolumeUnmounting
async def main():
    clock = SystemClock()
    volumes = CsiNodeVolumes(KubeletDirectories(sys.argv[1]), None)
    [done] = await VolumeUnmounting(volumes, clock).unmount_pod("u1", clock.boottime() + float(sys.argv[2]))
    print(done.is_released, done.problem)
asyncio.run(main())
"""


@pytest.fixture
def world(request):
    made = RealVolumeWorld(**getattr(request, "param", {}))
    yield made
    made.close()


def attached_below(world):
    """The files below the world's directory that loop devices are attached to."""
    files = [path.read_text().rstrip("\n") for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    return [file for file in files if file.startswith(f"{world.directory}/")]


async def unmount(world, uid="u1", seconds=60.0):
    clock = SystemClock()
    return await VolumeUnmounting(world.volumes, clock).unmount_pod(uid, clock.boottime() + seconds)


def left_over(world):
    kept = {world.root / name for name in ("plugins", "plugins_registry", "pods")}
    return sorted(
        str(path.relative_to(world.root))
        for path in world.root.rglob("*")
        if path not in kept and not path.name.endswith(".sock") and not path.name.endswith("example.com")
    )


async def test_all_is_unmounted_and_only_the_pods_directory_stays(world):
    await world.mount("u1", "pv-1", "vol-1", subpath=True)
    await world.mount("u1", "pv-2", "vol-2")
    await world.mount("u1", "token", "csi-9", inline=True)
    done = await unmount(world)
    assert [one.problem for one in done] == ["", "", ""]
    assert [one.volume.name for one in done if one.is_released] == ["pv-1", "pv-2"]
    assert left_over(world) == [
        "plugins/kubernetes.io",
        "plugins/kubernetes.io/csi",
        "pods/u1",
        "pods/u1/volume-subpaths",
        "pods/u1/volumes",
        "pods/u1/volumes/kubernetes.io~csi",
    ]


@uses_loop_devices
async def test_of_a_block_device_nothing_stays_and_nobody_has_it_open(world):
    """The driver detaches it only if the kubelet does not keep it open."""
    await world.mount("u1", "pv-1", "vol-1", block=True)
    [done] = await unmount(world)
    assert (done.problem, done.is_released) == ("", True)
    assert attached_below(world) == []
    assert left_over(world) == [
        "plugins/kubernetes.io",
        "plugins/kubernetes.io/csi",
        "plugins/kubernetes.io/csi/volumeDevices",
        "plugins/kubernetes.io/csi/volumeDevices/publish",
        "plugins/kubernetes.io/csi/volumeDevices/staging",
        "pods/u1",
        "pods/u1/volumeDevices",
        "pods/u1/volumeDevices/kubernetes.io~csi",
    ]


@uses_loop_devices
async def test_a_block_device_that_another_pod_uses_stays_staged(world):
    await world.mount("u1", "pv-1", "vol-1", block=True)
    other = await world.mount("u2", "pv-1", "vol-1", block=True)
    [done] = await unmount(world)
    assert (done.problem, done.is_released) == ("", False)
    state = await world.volumes.read_state(other)
    assert state.target
    assert len(attached_below(world)) == 2, "of the driver, and of the other pod"
    [done] = await unmount(world, "u2")
    assert (done.problem, done.is_released) == ("", True)
    assert attached_below(world) == []


@uses_loop_devices
async def test_a_device_that_a_driver_has_made_instead_of_a_mount_has_to_go_too(world):
    volume = await world.mount("u1", "pv-1", "vol-1", block=True)
    await world.volumes.unmount_subpaths((await world.volumes.read_state(volume)).subpaths)
    target = str(world.directories.target_path(volume))
    subprocess.run(["umount", target], check=True)
    Path(target).unlink()
    os.mknod(target, 0o600 | stat.S_IFBLK, os.makedev(7, 0))
    assert (await world.volumes.read_state(volume)).target == target


@pytest.mark.parametrize("world", [{"registered": True}], indirect=True)
async def test_a_socket_at_another_place_is_found_by_its_registration(world):
    await world.mount("u1", "pv-1", "vol-1")
    [done] = await unmount(world)
    assert done.is_released


async def test_a_root_directory_behind_a_symbolic_link(world, tmp_path):
    volume = await world.mount("u1", "pv-1", "vol-1")
    link = tmp_path / "kubelet"
    link.symlink_to(world.root)
    volumes = CsiNodeVolumes(KubeletDirectories(str(link)), ThisHost())
    [same] = await volumes.list_volumes("u1")
    state = await volumes.read_state(same)
    assert state == await world.volumes.read_state(volume)
    assert state.target
    assert state.stage


async def test_another_volume_of_the_same_file_system_is_no_mount_elsewhere(world):
    first = await world.mount("u1", "pv-1", "vol-1")
    second = await world.mount("u2", "pv-2", "vol-2")
    for path in (world.directories.target_path(second), world.directories.stage_path(second)):
        subprocess.run(["umount", str(path)], check=True)
        subprocess.run(["mount", "--bind", str(world.directories.stage_path(first)), str(path)], check=True)
    assert (await world.volumes.read_state(first)).elsewhere == ()
    elsewhere = await world.mount_elsewhere(first)
    assert (await world.volumes.read_state(first)).elsewhere == (elsewhere,)


async def test_a_mount_that_is_made_again_keeps_the_directories(world):
    volume = await world.mount("u1", "pv-1", "vol-1")
    await world.volumes.unpublish(volume, 60)
    await world.volumes.unstage(volume, 60)
    stage = world.directories.stage_path(volume)
    subprocess.run(["mount", "-t", "tmpfs", "again", str(stage)], check=True)
    with pytest.raises(Unavailable):
        await world.volumes.forget(volume, staged=True)
    assert (stage.parent / "vol_data.json").exists()


def unmount_in_namespace(world, propagation, seconds):
    """What an agent in a mount namespace of its own makes of the volumes of u1."""
    program = ["unshare", "--mount", "--propagation", propagation, sys.executable, "-c", LOOK]
    arguments = [str(world.root), str(seconds)]
    done = subprocess.run([*program, *arguments], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("world", [{"shared": True}], indirect=True)
async def test_from_a_mount_namespace_that_follows_the_hosts(world):
    """As in the agent's container, and in its unit with ProtectSystem=."""
    volume = await world.mount("u1", "pv-1", "vol-1")
    assert await asyncio.to_thread(unmount_in_namespace, world, "slave", 60) == "True \n"
    state = await world.volumes.read_state(volume)
    assert (state.target, state.stage, state.has_stage) == ("", "", False)


@pytest.mark.parametrize("world", [{"shared": True}], indirect=True)
async def test_volumes_that_were_mounted_after_an_agent_began_that_does_not_follow_the_host(world):
    """Their mounts are not in its table at all, also while they are mounted."""
    program = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", f"input(){LOOK}"]
    agent = subprocess.Popen(
        [*program, str(world.root), "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    while not await asyncio.to_thread(has_other_mounts, agent.pid):
        await asyncio.sleep(0.02)
    volume = await world.mount("u1", "pv-1", "vol-1")
    world.behave("NodeUnpublishVolume", "lie")
    world.behave("NodeUnstageVolume", "lie")
    told, _ = await asyncio.to_thread(agent.communicate, "\n")
    assert told.startswith("False the agent has not seen it mounted")
    assert (await world.volumes.read_state(volume)).target


def has_other_mounts(pid):
    """Whether the process has a mount namespace of its own and runs Python in it."""
    process = Path("/proc") / str(pid)
    own = Path("/proc/self/ns/mnt").readlink()
    return "python" in str((process / "exe").readlink()) and (process / "ns/mnt").readlink() != own


@pytest.mark.parametrize("world", [{"shared": True}], indirect=True)
async def test_a_mount_namespace_that_does_not_follow_it_proves_nothing(world):
    await world.mount("u1", "pv-1", "vol-1")
    told = await asyncio.to_thread(unmount_in_namespace, world, "private", 2)
    assert told.startswith("False the driver has answered OK to Node")
