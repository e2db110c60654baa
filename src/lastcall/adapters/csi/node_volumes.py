"""``ports.volumes.NodeVolumes`` by the kubelet's data on the disk, the mount table, and the CSI drivers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from lastcall.adapters.csi.driver_calls import CsiDrivers
from lastcall.adapters.csi.kubelet_directories import KubeletDirectories
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

UnmountPaths = Callable[[Sequence[str]], Awaitable[None]]
"""Unmounts paths in the host's mount namespace: the agent's own may be another one."""


class CsiNodeVolumes:
    """The volumes of the kubelet with this root directory. Files are read in threads: a disk may be slow."""

    def __init__(self, directories: KubeletDirectories, unmount_paths: UnmountPaths) -> None:
        self._directories = directories
        self._drivers = CsiDrivers(directories.root)
        self._unmount_paths = unmount_paths

    async def list_volumes(self, uid: str) -> Sequence[MountedVolume]:
        """From the pod's directory."""
        return await asyncio.to_thread(self._directories.list_volumes, uid)

    async def read_state(self, volume: MountedVolume, known: AbstractSet[Filesystem] = frozenset()) -> VolumeState:
        """From the mount table and the directories of all pods."""
        return await asyncio.to_thread(self._read_state, volume, known)

    async def unmount_subpaths(self, paths: Sequence[str]) -> None:
        """Calls ``unmount_paths``."""
        await self._unmount_paths(paths)

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
            has_stage = self._directories.stage_path(volume).parent.exists() if volume.driver else False
        except (OSError, ValueError) as error:
            raise Unavailable(f"the mounts of {volume.title} are not known: {error}") from error
        target, stage, subpaths = self._directories.real_paths(
            self._directories.target_path(volume),
            self._directories.stage_path(volume) if volume.driver else self._directories.target_path(volume),
            self._directories.subpath_directory(volume),
        )
        own = [*mounts_at(mounts, target), *mounts_at(mounts, stage)]
        filesystems = frozenset(mount.filesystem for mount in own) | known
        elsewhere = [mount.path for mount in mounts if shares_filesystem(mount, filesystems)]
        elsewhere = _outside(elsewhere, (target, stage, subpaths))
        if elsewhere:  # looking for another reason costs more than everything else
            elsewhere = _outside(elsewhere, self._paths_of_others(volume, others))
        return VolumeState(
            subpaths=_last_first(mounts_below(mounts, subpaths)),
            target=next(iter(_last_first(mounts_below(mounts, target))), ""),
            users=tuple(one.uid for one in others if _is_same_volume(one, volume)),
            has_stage=has_stage,
            stage=next(iter(_last_first(mounts_below(mounts, stage))), ""),
            filesystems=filesystems,
            elsewhere=tuple(elsewhere),
        )

    def _paths_of_others(self, volume: MountedVolume, others: Sequence[MountedVolume]) -> list[str]:
        """Directories of the other volumes, which explain mounts of a file system that several volumes share."""
        paths: list[Path] = []
        for other in others:
            if other.driver and not _is_same_volume(other, volume):
                stage = self._directories.stage_path(other)
                paths += (Path(other.path), stage, self._directories.subpath_directory(other))
        return self._directories.real_paths(*paths)


def _is_same_directory(one: MountedVolume, other: MountedVolume) -> bool:
    return one.path == other.path


def _is_same_volume(one: MountedVolume, other: MountedVolume) -> bool:
    """An unreadable directory may be of any volume of CSI."""
    return not one.driver or (one.driver, one.handle) == (other.driver, other.handle)


def _outside(paths: Sequence[str], directories: Sequence[str]) -> list[str]:
    return [path for path in paths if not any(is_below(path, directory) for directory in directories)]


def _last_first(mounts: Iterable[MountPoint]) -> tuple[str, ...]:
    """The order in which nested mounts can be unmounted."""
    return tuple(mount.path for mount in reversed(list(mounts)))
