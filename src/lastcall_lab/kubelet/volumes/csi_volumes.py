"""Persistent volumes by the CSI drivers that run on the node, in the kubelet's directories (``pkg/volume/csi``).

The calls have the volume's handle and paths alone: no capability, no attributes, no secrets.
"""

import asyncio
from pathlib import Path

import msgspec

from lastcall.adapters.csi.api import csi_pb2
from lastcall.adapters.csi.driver_calls import CsiDrivers
from lastcall.adapters.csi.kubelet_directories import DATA_FILE, KubeletDirectories
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import VOLUMES, Object
from lastcall.errors import Unavailable
from lastcall.model.node_volumes import CSI_PLUGIN, MountedVolume

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
        volume = _volume_at(path, pod, driver=source["driver"], handle=source["volumeHandle"])
        stage = self._directories.stage_path(volume)
        await asyncio.to_thread(_make_stage, stage, volume)
        await self._drivers.stage(volume.driver, volume.handle, str(stage))
        await self._drivers.publish(volume.driver, volume.handle, str(stage), str(path))

    async def unmount(self, pod: Object, claim: Object, path: Path) -> None:
        """Unpublishes the volume; unstages it when no other pod of the node has it. Unavailable if one of them fails."""
        data = await asyncio.to_thread(_read_data, path)
        if data is None:
            return
        volume = _volume_at(path, pod, driver=data["driverName"], handle=data["volumeHandle"])
        stage = self._directories.stage_path(volume)
        await self._drivers.unpublish(volume.driver, volume.handle, str(path), within=_WITHIN)
        last = not await asyncio.to_thread(self._has_other_users, volume)
        if last:
            await self._drivers.unstage(volume.driver, volume.handle, str(stage), within=_WITHIN)
        try:
            await asyncio.to_thread(self._directories.remove_volume, volume, staged=last)
        except OSError as error:
            raise Unavailable(f"{error.filename}: {error.strerror}") from error

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


def _volume_at(path: Path, pod: Object, *, driver: str, handle: str) -> MountedVolume:
    directory, uid = path.parent, pod["metadata"]["uid"]
    return MountedVolume(
        uid=uid, name=directory.name, plugin=CSI_PLUGIN, path=str(directory), driver=driver, handle=handle
    )


def _make_stage(stage: Path, volume: MountedVolume) -> None:
    """The staging directory with the kubelet's file beside it (``csi_attacher.go: MountDevice``)."""
    stage.mkdir(parents=True, exist_ok=True)
    data = {"driverName": volume.driver, "volumeHandle": volume.handle}
    (stage.parent / DATA_FILE).write_bytes(msgspec.json.encode(data))


def _read_data(path: Path) -> Object | None:
    """The record of the mount at ``path``; None if somebody has unmounted it already."""
    try:
        data: Object = msgspec.json.decode((path.parent / DATA_FILE).read_bytes())
    except FileNotFoundError:
        return None
    return data
