"""umount(8) through a real systemd, in that systemd's mount namespace and not in this process's."""

import asyncio
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.common.loop_devices import uses_loop_devices
from support.host import service_manager

from lastcall.adapters.csi.loop_devices import list_loop_devices
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.systemd.host_unmount import HostUnmount
from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.aio import timeout
from lastcall.errors import Unavailable

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def host():
    """The directory of a systemd that runs; two file systems are mounted in it."""
    if reason := service_manager.why_not():
        pytest.skip(reason)
    state = Path(tempfile.mkdtemp(prefix="lastcall-", dir="/tmp"))
    mounts = [state / "var/lib/a", state / "var/lib/a/b"]
    for path in mounts:
        path.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "test", path], check=True)
    units = {**service_manager.BUS, "test.target": "[Unit]\nRequires=dbus.socket dbus.service\n"}
    try:
        with service_manager.service_manager(state, units, start="test.target"):
            yield state
    finally:
        for path in reversed(mounts):
            subprocess.run(["umount", path], check=True)
        shutil.rmtree(state)


async def reach_manager(address):
    async with timeout(60):
        while True:
            try:
                async with SystemdUnits.open(address) as systemd:
                    await systemd.unit_states("test.target")
                    return
            except Unavailable:
                await SystemClock().sleep(0.02)


async def mounted_paths(host, address, name):
    """The paths below the host's directory in the manager's own mount table, as a service sees it."""
    seen = host / name
    copy = f"cp /proc/self/mountinfo {seen}.new && mv {seen}.new {seen}"
    async with SystemdUnits.open(address) as systemd:
        await systemd.run_command(f"{name}.service", ["/bin/sh", "-c", copy], description="looks")
    async with timeout(60):
        while not await asyncio.to_thread(seen.exists):
            await SystemClock().sleep(0.02)
    lines = (await asyncio.to_thread(seen.read_text)).splitlines()
    return [path for line in lines if (path := line.split(" ")[4]).startswith(f"{host}/var")]


async def test_paths_are_unmounted_in_the_managers_namespace(host):
    address = f"unix:path={host}/run/user/bus"
    await reach_manager(address)
    paths = [str(host / "var/lib/a/b"), str(host / "var/lib/a")]
    assert sorted(await mounted_paths(host, address, "before"), reverse=True) == paths
    await HostUnmount(SystemClock(), lambda: SystemdUnits.open(address)).unmount_paths(paths)
    assert await mounted_paths(host, address, "after") == []


async def test_what_cannot_be_unmounted_stays_and_may_be_tried_again(host):
    address = f"unix:path={host}/run/user/bus"
    await reach_manager(address)
    unmount = HostUnmount(SystemClock(), lambda: SystemdUnits.open(address))
    for _ in range(10):
        await unmount.unmount_paths([str(host / "var/lib/a")])  # busy, because another file system is mounted in it
    assert len(await mounted_paths(host, address, "after")) == 2


@uses_loop_devices
async def test_loop_devices_are_detached(host):
    address = f"unix:path={host}/run/user/bus"
    await reach_manager(address)
    file = host / "image"
    file.write_bytes(bytes(1 << 20))
    device = await asyncio.to_thread(attach_loop, file)
    assert await asyncio.to_thread(list_loop_devices, [str(file)]) == [device]
    await HostUnmount(SystemClock(), lambda: SystemdUnits.open(address)).detach_loops([device])
    assert await asyncio.to_thread(list_loop_devices, [str(file)]) == []


def attach_loop(file):
    done = subprocess.run(["losetup", "--find", "--show", file], capture_output=True, text=True, check=True)
    return done.stdout.strip()


async def test_without_systemd_it_is_unavailable():
    unmount = HostUnmount(SystemClock(), lambda: SystemdUnits.open("unix:path=/nowhere/bus"))
    with pytest.raises(Unavailable):
        await unmount.unmount_paths(["/nowhere/a"])
