"""Worlds with mounted CSI volumes: in memory, and with a real driver process and real mounts."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from grpclib.client import Channel

from lastcall.adapters.csi.api import csi_grpc, csi_pb2
from lastcall.adapters.csi.kubelet_directories import KubeletDirectories
from lastcall.adapters.csi.node_volumes import CsiNodeVolumes
from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.fakes.node_volumes import DRIVER, FakeNodeVolumes

PROGRAM = Path(__file__).with_name("driver_program.py")
SOURCES = Path(__file__).parents[3] / "src"


class FakeVolumeWorld:
    def __init__(self):
        self.volumes = FakeNodeVolumes(SystemClock())

    async def mount(self, uid, name, handle, **options):
        return self.volumes.mount(uid, name, handle, **options)

    async def mount_elsewhere(self, volume):
        self.volumes.mount_elsewhere(volume.handle, "/mnt/other")
        return "/mnt/other"

    def behave(self, method, verb):
        self.volumes.behaviour[method] = verb

    def stop_driver(self):
        self.volumes.behaviour |= {"NodeUnpublishVolume": "gone", "NodeUnstageVolume": "gone"}

    @property
    def calls(self):
        return self.volumes.calls

    def close(self):
        pass


class RealVolumeWorld:
    """A kubelet's directories below a directory of its own, a driver process, and the mounts of this machine. Needs root."""

    def __init__(self, *, registered=False, shared=False):
        directory = self.directory = Path(
            tempfile.mkdtemp(prefix="lc-")
        )  # short: a socket's path has 107 bytes at most
        self.root = directory / "kubelet"
        self.root.mkdir()
        if shared:  # other mount namespaces may follow what happens below it
            subprocess.run(["mount", "--bind", str(self.root), str(self.root)], check=True)
            subprocess.run(["mount", "--make-shared", str(self.root)], check=True)
        plugin = self.root / "plugins" / DRIVER
        plugin.mkdir(parents=True)
        self.behaviour = {}
        self.socket = directory / "elsewhere.sock" if registered else plugin / "csi.sock"
        registration = self.root / "plugins_registry" / f"{DRIVER}-reg.sock"
        registration.parent.mkdir()
        arguments = [DRIVER, str(self.socket), str(directory), *([str(registration)] if registered else [])]
        self.driver = subprocess.Popen(
            [sys.executable, str(PROGRAM), *arguments], env={**os.environ, "PYTHONPATH": str(SOURCES)}
        )
        self.directories = KubeletDirectories(str(self.root))
        self.volumes = CsiNodeVolumes(self.directories, ThisHost())
        end = time.monotonic() + 60
        while not (directory / "ready").exists():
            assert self.driver.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)

    async def mount(self, uid, name, handle, *, inline=False, subpath=False, block=False):
        if block:
            return await self._map(uid, name, handle)
        directory = self.root / "pods" / uid / "volumes" / "kubernetes.io~csi" / name
        directory.mkdir(parents=True)
        mode = "Ephemeral" if inline else "Persistent"
        data = {"driverName": DRIVER, "volumeHandle": handle, "specVolID": name, "volumeLifecycleMode": mode}
        (directory / "vol_data.json").write_text(json.dumps(data))
        volume = next(one for one in await self.volumes.list_volumes(uid) if one.name == name)
        stage, target = self.directories.stage_path(volume), directory / "mount"
        if inline:
            target.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "inline", str(target)], check=True)
            return volume
        stage.mkdir(parents=True, exist_ok=True)
        (stage.parent / "vol_data.json").write_text(json.dumps(data))
        await self._publish(handle, stage, target)
        if subpath:
            mount_point = self.directories.kubelet_mounts(volume) / "main" / "0"
            mount_point.mkdir(parents=True)
            (target / "part").mkdir()
            subprocess.run(["mount", "--bind", str(target / "part"), str(mount_point)], check=True)
        return volume

    async def _map(self, uid, name, handle):
        """As a kubelet maps a block device."""
        devices = self.root / "plugins/kubernetes.io/csi/volumeDevices"
        stage, target, bound = (
            devices / "staging" / name,
            devices / "publish" / name / uid,
            devices / name / "dev" / uid,
        )
        data, link = devices / name / "data", self.root / "pods" / uid / "volumeDevices/kubernetes.io~csi" / name
        for directory in (stage, target.parent, bound.parent, data, link.parent):
            directory.mkdir(parents=True, exist_ok=True)
        (data / "vol_data.json").write_text(
            json.dumps({"driverName": DRIVER, "volumeHandle": handle, "specVolID": name})
        )
        await self._publish(handle, stage, target)
        bound.touch()
        subprocess.run(["mount", "--bind", str(target), str(bound)], check=True)
        subprocess.run(["losetup", "--find", str(bound)], check=True)
        link.symlink_to(target)
        return next(one for one in await self.volumes.list_volumes(uid) if one.name == name)

    async def _publish(self, handle, stage, target):
        channel = Channel(path=str(self.socket))
        try:
            node = csi_grpc.NodeStub(channel)
            paths = {"volume_id": handle, "staging_target_path": str(stage)}
            await node.NodeStageVolume(csi_pb2.NodeStageVolumeRequest(**paths))
            await node.NodePublishVolume(csi_pb2.NodePublishVolumeRequest(**paths, target_path=str(target)))
        finally:
            channel.close()

    async def mount_elsewhere(self, volume):
        path = self.directory / "other place"
        path.mkdir()
        subprocess.run(["mount", "--bind", str(self.directories.stage_path(volume)), str(path)], check=True)
        return str(path)

    def behave(self, method, verb):
        self.behaviour[method] = verb
        lines = [f"{method} {verb}\n" for method, verb in self.behaviour.items()]
        (self.directory / "behaviour").write_text("".join(lines))

    def stop_driver(self):
        self.driver.kill()
        self.driver.wait()

    @property
    def calls(self):
        lines = (self.directory / "calls").read_text().splitlines()
        made = (tuple(line.split(" ")) for line in lines)
        return [call for call in made if call[0] in ("NodeUnpublishVolume", "NodeUnstageVolume")]

    def close(self):
        self.stop_driver()
        detach_loops_below(self.directory)
        mounts = [line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for path in reversed([path.replace("\\040", " ") for path in mounts]):
            if path.startswith(f"{self.directory}/"):
                subprocess.run(["umount", "--lazy", path], check=True)
        shutil.rmtree(self.directory)


def detach_loops_below(directory):
    """Those whose files are in the directory or below; one that is detached meanwhile is no error."""
    for device in sorted(Path("/sys/block").glob("loop*"), reverse=True):
        with contextlib.suppress(FileNotFoundError):
            if (device / "loop/backing_file").read_text().startswith(f"{directory}/"):
                subprocess.run(["losetup", "--detach", f"/dev/{device.name}"], check=False)


class ThisHost:
    """What a host does, in this mount namespace."""

    @staticmethod
    async def unmount_paths(paths):
        await asyncio.to_thread(subprocess.run, ["umount", *paths], check=True)

    @staticmethod
    async def detach_loops(devices):
        await asyncio.to_thread(subprocess.run, ["losetup", "--detach", *devices], check=True)
