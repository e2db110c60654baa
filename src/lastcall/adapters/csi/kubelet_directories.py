"""What a kubelet keeps of its pods' volumes below its root directory.

``pods/UID/volumes/PLUGIN/NAME`` is a volume of a pod; the plugin is written with ~ for /. For CSI it has
``vol_data.json`` with driver and handle, and the mount point ``mount`` (pkg/volume/csi/csi_mounter.go). The staging path
is ``plugins/kubernetes.io/csi/DRIVER/SHA256-OF-THE-HANDLE/globalmount`` (csi_attacher.go: makeDeviceMountPath).
``pods/UID/volume-subpaths/NAME`` has the mounts of subPath.

A volume that a pod uses as a block device is the link ``pods/UID/volumeDevices/PLUGIN/NAME``. For CSI the rest is below
``plugins/kubernetes.io/csi/volumeDevices`` (csi_block.go): ``publish/NAME/UID`` is the driver's, ``staging/NAME`` too,
``NAME/dev/UID`` the kubelet's own mount of the device, and ``NAME/data`` has ``vol_data.json``. All methods block.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from lastcall.errors import Unavailable
from lastcall.model.node_volumes import CSI_PLUGIN, MountedVolume

ROOT = "/var/lib/kubelet"
"""The kubelet's --root-dir by default."""

DATA_FILE = "vol_data.json"

_DEVICES = "volumeDevices"
_CSI_DIRECTORY = CSI_PLUGIN.replace("/", "~")

_OF_THIS_NODE = frozenset(
    f"kubernetes.io~{kind}"
    for kind in ("configmap", "downward-api", "empty-dir", "git-repo", "host-path", "projected", "secret")
)
"""Plugins whose volumes no other node can mount, so that nobody waits for their end."""


class KubeletDirectories:
    """The directories below ``root`` (the kubelet's --root-dir)."""

    def __init__(self, root: str = ROOT) -> None:
        self.root = Path(root)
        self._read: dict[str, MountedVolume] = {}

    def real_paths(self, *paths: Path) -> list[str]:
        """Paths below the root as the mount table has them: without symbolic links in the root."""
        root = self.root.resolve()
        return [str(root / path.relative_to(self.root)) for path in paths]

    def list_volumes(self, uid: str) -> list[MountedVolume]:
        """As ``ports.volumes.NodeVolumes``."""
        pod = self._pod_directory(uid)
        try:
            if not pod.is_dir():
                raise Unavailable(f"{pod} is not a directory")
            return [*self._volumes_below(uid, pod / "volumes"), *self._block_volumes_below(uid, pod / _DEVICES)]
        except OSError as error:
            raise Unavailable(f"{error.filename}: {error.strerror}") from error

    def list_csi_volumes(self) -> list[MountedVolume]:
        """The CSI volumes of all pods with a directory and the kubelet's file in it, also a damaged one.

        What a directory says never changes, so it is read once.
        """
        found: list[MountedVolume] = []
        for uid in _sorted_names(str(self.root / "pods")):
            for kind in ("volumes", _DEVICES):
                directory = f"{self.root}/pods/{uid}/{kind}/{_CSI_DIRECTORY}"
                names = _sorted_names(directory)
                found += (self._read_once(uid, f"{directory}/{name}", is_block=kind == _DEVICES) for name in names)
        return [one for one in found if not one.problem or self.data_file(one).exists()]

    def _read_once(self, uid: str, path: str, *, is_block: bool) -> MountedVolume:
        known = self._read.get(path)
        if known is None:
            known = self._read_csi_volume(uid, Path(path), is_block=is_block)
            if not known.problem:
                self._read[path] = known
        return known

    def target_path(self, volume: MountedVolume) -> Path:
        """Where the driver publishes the volume for the pod."""
        if volume.is_block:
            return self._devices / "publish" / _volume_name(volume) / volume.uid
        return Path(volume.path) / "mount"

    def kubelet_mounts(self, volume: MountedVolume) -> Path:
        """Where the kubelet itself mounts the volume for the pod: parts of it for subPath, or a block device."""
        if volume.is_block:
            return self._devices / _volume_name(volume) / "dev" / volume.uid
        return self._pod_directory(volume.uid) / "volume-subpaths" / volume.name

    def stage_path(self, volume: MountedVolume) -> Path:
        """Where the driver stages the volume for the node."""
        if volume.is_block:
            return self._devices / "staging" / _volume_name(volume)
        sha = hashlib.sha256(volume.handle.encode()).hexdigest()
        return self.root / "plugins" / CSI_PLUGIN / volume.driver / sha / "globalmount"

    def remove_volume(self, volume: MountedVolume, *, staged: bool) -> None:
        """Removes what the kubelet removes after unmounting; OSError if a directory is mounted or not empty."""
        if volume.is_block:
            self._remove_block_volume(volume, staged=staged)
            return
        if staged:
            _remove_mount_directory(self.stage_path(volume))
        subpaths = self.kubelet_mounts(volume)
        if subpaths.is_dir():
            for path in sorted(subpaths.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()  # a file is the mount point of a file
            subpaths.rmdir()
        _remove_mount_directory(self.target_path(volume))

    def has_stage(self, volume: MountedVolume) -> bool:
        """Whether the kubelet has staged the volume for the node, and has not removed what is left of that."""
        stage = self.stage_path(volume)
        return stage.exists() if volume.is_block else stage.parent.exists()

    @property
    def _devices(self) -> Path:
        return self.root / "plugins" / CSI_PLUGIN / _DEVICES

    def data_file(self, volume: MountedVolume) -> Path:
        """The kubelet's file with the volume's driver and handle."""
        if volume.is_block:
            return self._devices / _volume_name(volume) / "data" / DATA_FILE
        return Path(volume.path) / DATA_FILE

    def _remove_block_volume(self, volume: MountedVolume, *, staged: bool) -> None:
        """The link goes last: by it the volume is found again (csi_block.go: TearDownDevice)."""
        target, mount, data = self.target_path(volume), self.kubelet_mounts(volume), self.data_file(volume)
        for file in (target, mount):
            file.unlink(missing_ok=True)
        if staged:
            for directory in (self.stage_path(volume), target.parent, mount.parent):
                _remove_if_there(directory.rmdir)
            for remove in (data.unlink, data.parent.rmdir, data.parent.parent.rmdir):
                _remove_if_there(remove)
        Path(volume.path).unlink(missing_ok=True)

    def _pod_directory(self, uid: str) -> Path:
        return self.root / "pods" / uid

    def _volumes_below(self, uid: str, directory: Path) -> Iterator[MountedVolume]:
        for plugin in _sorted_entries(directory):
            for path in () if plugin.name in _OF_THIS_NODE else _sorted_entries(plugin):
                if plugin.name == _CSI_DIRECTORY:
                    yield self._read_csi_volume(uid, path, is_block=False)
                else:
                    yield _foreign_volume(uid, path, f"the agent cannot unmount volumes of {_plugin_name(plugin)}")

    def _block_volumes_below(self, uid: str, directory: Path) -> Iterator[MountedVolume]:
        for plugin in _sorted_entries(directory):
            for path in _sorted_entries(plugin):
                if plugin.name == _CSI_DIRECTORY:
                    yield self._read_csi_volume(uid, path, is_block=True)
                else:
                    yield _foreign_volume(uid, path, f"the agent cannot unmap block devices of {_plugin_name(plugin)}")

    def _read_csi_volume(self, uid: str, path: Path, *, is_block: bool) -> MountedVolume:
        unread = MountedVolume(uid=uid, name=path.name, plugin=CSI_PLUGIN, path=str(path), is_block=is_block)
        file = self.data_file(unread)
        try:
            data = json.loads(file.read_text())
            driver, handle = data["driverName"], data["volumeHandle"]
            inline = data.get("volumeLifecycleMode") == "Ephemeral"
            name = data.get("specVolID") or path.name
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return replace(unread, problem=f"{file} cannot be read: {type(error).__name__}: {error}")
        if not (isinstance(driver, str) and isinstance(handle, str) and driver and handle and "/" not in driver):
            return replace(unread, problem=f"{file} names no driver and handle")
        return replace(unread, name=str(name), driver=driver, handle=handle, inline=inline)


def _sorted_entries(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else []


def _sorted_names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 - Path.iterdir makes this look at all pods twice as slow
    except (FileNotFoundError, NotADirectoryError):
        return []


def _plugin_name(directory: Path) -> str:
    return directory.name.replace("~", "/")


def _foreign_volume(uid: str, path: Path, problem: str) -> MountedVolume:
    return MountedVolume(uid=uid, name=path.name, plugin=_plugin_name(path.parent), path=str(path), problem=problem)


def _volume_name(volume: MountedVolume) -> str:
    """The volume's name as the kubelet's directories have it, whatever its file says."""
    return Path(volume.path).name


def _remove_mount_directory(path: Path) -> None:
    """The mount point, the kubelet's file beside it, and the directory of both (csi_mounter.go: removeMountDir)."""
    for remove in (path.rmdir, (path.parent / DATA_FILE).unlink, path.parent.rmdir):
        _remove_if_there(remove)


def _remove_if_there(remove: Callable[[], None]) -> None:
    with contextlib.suppress(FileNotFoundError):
        remove()
