"""Persistent volumes by the CSI drivers that run on the node, in the kubelet's directories (``pkg/volume/csi``).

A block device is bound below its plugin's directory too, and a loop device keeps it open (``pkg/volume/util``:
MapBlockVolume). The calls have the volume's handle and paths alone: no capability, no attributes, no secrets.
"""

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lastcall.adapters.csi.api import csi_pb2
from lastcall.adapters.csi.driver_calls import CsiDrivers
from lastcall.adapters.csi.kubelet_directories import DATA_FILE, KubeletDirectories
from lastcall.adapters.csi.loop_devices import list_loop_devices
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import VOLUMES, Object
from lastcall.errors import Unavailable
from lastcall.model.node_volumes import CSI_PLUGIN, MountedVolume

T = TypeVar("T")

_WITHIN = 120.0
"""Seconds for a call (``csiTimeout``)."""


class CsiNodeDriver:
    """``driver_port.NodeVolumeDriver``; ``root`` is the kubelet's --root-dir."""

    def __init__(self, root: Path, client: Client) -> None:
        self._directories = KubeletDirectories(str(root))
        self._drivers = _MountingDrivers(root)
        self._client = client

    async def mount(self, pod: Object, claim: Object, path: Path) -> None:
        """Stages the volume for the node, and publishes it for the pod."""
        found = await self._client.get(VOLUMES, claim["spec"]["volumeName"])
        source = found["spec"]["csi"]
        is_block, place = _place_of(claim, path)
        volume = MountedVolume(
            uid=pod["metadata"]["uid"],
            name=place.name,
            plugin=CSI_PLUGIN,
            path=str(place),
            driver=source["driver"],
            handle=source["volumeHandle"],
            is_block=is_block,
        )
        stage, target = self._directories.stage_path(volume), self._directories.target_path(volume)
        await self._in_thread(self._prepare, volume)
        await self._drivers.stage(volume.driver, volume.handle, str(stage))
        await self._drivers.publish(volume.driver, volume.handle, str(stage), str(target))
        if is_block:
            await self._in_thread(self._map_device, volume)

    async def unmount(self, pod: Object, claim: Object, path: Path) -> None:
        """Unpublishes the volume; unstages it when no other pod of the node has it. Unavailable if one of them fails."""
        is_block, place = _place_of(claim, path)
        volume = await self._in_thread(self._find, pod["metadata"]["uid"], str(place))
        if volume is None:
            return
        stage, target = self._directories.stage_path(volume), self._directories.target_path(volume)
        if is_block:
            await self._in_thread(self._unmap_device, volume)
        await self._drivers.unpublish(volume.driver, volume.handle, str(target), within=_WITHIN)
        last = not await asyncio.to_thread(self._has_other_users, volume)
        if last:
            await self._drivers.unstage(volume.driver, volume.handle, str(stage), within=_WITHIN)
        await self._in_thread(self._directories.remove_volume, volume, staged=last)

    async def _in_thread(self, work: Callable[..., T], *arguments: Any, **options: Any) -> T:
        try:
            return await asyncio.to_thread(work, *arguments, **options)
        except OSError as error:
            raise Unavailable(f"{error.filename}: {error.strerror}") from error
        except subprocess.CalledProcessError as error:
            raise Unavailable(f"{' '.join(error.cmd)}: {error.stderr.strip()}") from error

    def _prepare(self, volume: MountedVolume) -> None:
        """The staging directory with the kubelet's file (``csi_attacher.go: MountDevice``); the link to a block device."""
        stage = self._directories.stage_path(volume)
        stage.mkdir(parents=True, exist_ok=True)
        data = self._directories.data_file(volume) if volume.is_block else stage.parent / DATA_FILE
        data.parent.mkdir(parents=True, exist_ok=True)
        data.write_bytes(msgspec.json.encode({"driverName": volume.driver, "volumeHandle": volume.handle}))
        link, target = Path(volume.path), self._directories.target_path(volume)
        if volume.is_block:
            target.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(target)

    def _map_device(self, volume: MountedVolume) -> None:
        target, mount = self._directories.target_path(volume), self._directories.kubelet_mounts(volume)
        mount.parent.mkdir(parents=True, exist_ok=True)
        mount.touch()
        if not mount.is_block_device():
            _run("mount", "--bind", str(target), str(mount))
        if not list_loop_devices([str(mount)]):
            _run("losetup", "--find", str(mount))

    def _unmap_device(self, volume: MountedVolume) -> None:
        mount = self._directories.kubelet_mounts(volume)
        for device in list_loop_devices([str(mount)]):
            _run("losetup", "--detach", device)
        if mount.is_block_device():
            _run("umount", str(mount))

    def _find(self, uid: str, path: str) -> MountedVolume | None:
        """The volume of the pod at this path; None if it is unmounted already."""
        found = (one for one in self._directories.list_volumes(uid) if one.path == path and not one.problem)
        return next(found, None)

    def _has_other_users(self, volume: MountedVolume) -> bool:
        return any(
            (one.driver, one.handle) == (volume.driver, volume.handle) and one.path != volume.path
            for one in self._directories.list_csi_volumes()
        )


class _MountingDrivers(CsiDrivers):
    """With the calls that the agent never makes."""

    async def stage(self, driver: str, handle: str, stage: str) -> None:
        """NodeStageVolume."""
        request = csi_pb2.NodeStageVolumeRequest(volume_id=handle, staging_target_path=stage)
        async with self._node_service(driver, "NodeStageVolume") as node:
            await node.NodeStageVolume(request, timeout=_WITHIN)

    async def publish(self, driver: str, handle: str, stage: str, target: str) -> None:
        """NodePublishVolume."""
        request = csi_pb2.NodePublishVolumeRequest(volume_id=handle, staging_target_path=stage, target_path=target)
        async with self._node_service(driver, "NodePublishVolume") as node:
            await node.NodePublishVolume(request, timeout=_WITHIN)


def _place_of(claim: Object, path: Path) -> tuple[bool, Path]:
    """Whether the pod uses a block device, and what its directory has of the volume: a link, or a directory."""
    is_block = claim["spec"].get("volumeMode") == "Block"
    return is_block, path if is_block else path.parent


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
