"""``ports.volumes.NodeVolumes`` by the kubelet's data on the disk, the mount table, and the CSI drivers."""

import asyncio
import os
import stat
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Protocol

from lastcall.adapters.csi.driver_calls import CsiDrivers
from lastcall.adapters.csi.kubelet_directories import KubeletDirectories
from lastcall.adapters.csi.loop_devices import list_loop_devices
from lastcall.adapters.csi.mount_table import (
    MountPoint,
    is_below,
    mounts_at,
    mounts_below,
    parse_mounts,
    shares_filesystem,
)
from lastcall.errors import Unavailable
from lastcall.model.node_volumes import Filesystem, MountedVolume, VolumeState

MOUNT_TABLE = Path("/proc/self/mountinfo")


class HostMounts(Protocol):
    """What is undone on the host: the agent's own mount namespace may be another one, without the host's devices."""

    async def unmount_paths(self, paths: Sequence[str]) -> None:
        """Unmounts the paths, in this order."""
        ...

    async def detach_loops(self, devices: Sequence[str]) -> None:
        """Detaches loop devices from their files."""
        ...


class CsiNodeVolumes:
    """The volumes of the kubelet with this root directory. Files are read in threads: a disk may be slow."""

    def __init__(self, directories: KubeletDirectories, host: HostMounts) -> None:
        self._directories = directories
        self._drivers = CsiDrivers(directories.root)
        self._host = host

    async def list_volumes(self, uid: str) -> Sequence[MountedVolume]:
        """From the pod's directory."""
        return await asyncio.to_thread(self._directories.list_volumes, uid)

    async def read_state(self, volume: MountedVolume, known: AbstractSet[Filesystem] = frozenset()) -> VolumeState:
        """From the mount table and the directories of all pods."""
        return await asyncio.to_thread(self._read_state, volume, known)

    async def unmount_subpaths(self, paths: Sequence[str]) -> None:
        """First detaches the loop devices that keep block devices open."""
        try:
            loops = await asyncio.to_thread(list_loop_devices, paths)
        except OSError as error:
            raise Unavailable(f"{error.filename}: {error.strerror}") from error
        if loops:
            await self._host.detach_loops(loops)
        await self._host.unmount_paths(paths)

    async def unpublish(self, volume: MountedVolume, within: float) -> None:
        """Calls the driver."""
        target = str(self._directories.target_path(volume))
        await self._drivers.unpublish(volume.driver, volume.handle, target, within=within)

    async def unstage(self, volume: MountedVolume, within: float) -> None:
        """Calls the driver."""
        stage = str(self._directories.stage_path(volume))
        await self._drivers.unstage(volume.driver, volume.handle, stage, within=within)

    async def forget(self, volume: MountedVolume, *, staged: bool) -> None:
        """Removes the directories. Unavailable if one is mounted again, or holds what the kubelet does not write."""
        try:
            await asyncio.to_thread(self._directories.remove_volume, volume, staged=staged)
        except OSError as error:
            raise Unavailable(f"{error.filename}: {error.strerror}") from error

    def _read_state(self, volume: MountedVolume, known: AbstractSet[Filesystem]) -> VolumeState:
        try:
            mounts = parse_mounts(MOUNT_TABLE.read_text())
            others = [one for one in self._directories.list_csi_volumes() if not _is_same_directory(one, volume)]
            has_stage = self._directories.has_stage(volume) if volume.driver else False
        except (OSError, ValueError) as error:
            raise Unavailable(f"the mounts of {volume.title} are not known: {error}") from error
        target, stage, kubelets = self._directories.real_paths(
            self._directories.target_path(volume),
            self._directories.stage_path(volume) if volume.driver else self._directories.target_path(volume),
            self._directories.kubelet_mounts(volume),
        )
        staged = list(mounts_below(mounts, stage))  # of a block device the driver may mount files in its directory
        own = [*mounts_at(mounts, target), *(staged if volume.is_block else mounts_at(mounts, stage))]
        own += mounts_at(mounts, kubelets)
        filesystems = frozenset(mount.filesystem for mount in own) | known
        elsewhere = [mount.path for mount in mounts if shares_filesystem(mount, filesystems)]
        elsewhere = _outside(elsewhere, (target, stage, kubelets))
        if elsewhere:  # looking for another reason costs more than everything else
            elsewhere = _outside(elsewhere, self._paths_of_others(volume, others))
        return VolumeState(
            subpaths=_last_first(mounts_below(mounts, kubelets)),
            target=next(iter(_last_first(mounts_below(mounts, target))), "") or _device_at(target),
            users=tuple(one.uid for one in others if _is_same_volume(one, volume)),
            has_stage=has_stage,
            stage=next(iter(_last_first(staged)), ""),
            filesystems=filesystems,
            elsewhere=tuple(elsewhere),
        )

    def _paths_of_others(self, volume: MountedVolume, others: Sequence[MountedVolume]) -> list[str]:
        """Directories of the other volumes, which explain mounts of a file system that several volumes share."""
        paths: list[Path] = []
        for other in others:
            if other.driver and not _is_same_volume(other, volume):
                stage = self._directories.stage_path(other)
                target, kubelets = self._directories.target_path(other), self._directories.kubelet_mounts(other)
                paths += (target, stage, kubelets)
        return self._directories.real_paths(*paths)


def _is_same_directory(one: MountedVolume, other: MountedVolume) -> bool:
    return one.path == other.path


def _is_same_volume(one: MountedVolume, other: MountedVolume) -> bool:
    """An unreadable directory may be of any volume of CSI."""
    return not one.driver or (one.driver, one.handle) == (other.driver, other.handle)


def _device_at(path: str) -> str:
    """The path if it is a device, which a driver may have made there instead of a mount; else ""."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return ""
    return path if stat.S_ISBLK(mode) or stat.S_ISCHR(mode) else ""


def _outside(paths: Sequence[str], directories: Sequence[str]) -> list[str]:
    return [path for path in paths if not any(is_below(path, directory) for directory in directories)]


def _last_first(mounts: Iterable[MountPoint]) -> tuple[str, ...]:
    """The order in which nested mounts can be unmounted."""
    return tuple(mount.path for mount in reversed(list(mounts)))
