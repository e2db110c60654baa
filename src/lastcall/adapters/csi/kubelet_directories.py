"""What a kubelet keeps of its pods' volumes below its root directory.

``pods/UID/volumes/PLUGIN/NAME`` is a volume of a pod; the plugin is written with ~ for /. For CSI it has
``vol_data.json`` with driver and handle, and the mount point ``mount`` (pkg/volume/csi/csi_mounter.go). The staging path
is ``plugins/kubernetes.io/csi/DRIVER/SHA256-OF-THE-HANDLE/globalmount`` (csi_attacher.go: makeDeviceMountPath).
``pods/UID/volume-subpaths/NAME`` has the mounts of subPath. All methods block.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from lastcall.errors import Unavailable
from lastcall.model.node_volumes import CSI_PLUGIN, MountedVolume

ROOT = "/var/lib/kubelet"
"""The kubelet's --root-dir by default."""

DATA_FILE = "vol_data.json"

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
            return [*self._volumes_below(uid, pod / "volumes"), *self._block_volumes_below(uid, pod / "volumeDevices")]
        except OSError as error:
            raise Unavailable(f"{error.filename}: {error.strerror}") from error

    def list_csi_volumes(self) -> list[MountedVolume]:
        """The CSI volumes of all pods with a directory and the kubelet's file in it, also a damaged one.

        What a directory says never changes, so it is read once.
        """
        found: list[MountedVolume] = []
        for uid in _sorted_names(str(self.root / "pods")):
            directory = f"{self.root}/pods/{uid}/volumes/{CSI_PLUGIN.replace('/', '~')}"
            found += (self._read_once(uid, f"{directory}/{name}") for name in _sorted_names(directory))
        return [one for one in found if not one.problem or (Path(one.path) / DATA_FILE).exists()]

    def _read_once(self, uid: str, path: str) -> MountedVolume:
        known = self._read.get(path)
        if known is None:
            known = _read_csi_volume(uid, Path(path))
            if not known.problem:
                self._read[path] = known
        return known

    def target_path(self, volume: MountedVolume) -> Path:
        """Where the volume is mounted for the pod."""
        return Path(volume.path) / "mount"

    def subpath_directory(self, volume: MountedVolume) -> Path:
        """Where parts of the volume are mounted for containers with subPath."""
        return self._pod_directory(volume.uid) / "volume-subpaths" / volume.name

    def stage_path(self, volume: MountedVolume) -> Path:
        """Where the volume is mounted for the node."""
        sha = hashlib.sha256(volume.handle.encode()).hexdigest()
        return self.root / "plugins" / CSI_PLUGIN / volume.driver / sha / "globalmount"

    def remove_volume(self, volume: MountedVolume, *, staged: bool) -> None:
        """Removes what the kubelet removes after unmounting; OSError if a directory is mounted or not empty."""
        if staged:
            _remove_mount_directory(self.stage_path(volume))
        subpaths = self.subpath_directory(volume)
        if subpaths.is_dir():
            for path in sorted(subpaths.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()  # a file is the mount point of a file
            subpaths.rmdir()
        _remove_mount_directory(self.target_path(volume))

    def _pod_directory(self, uid: str) -> Path:
        return self.root / "pods" / uid

    def _volumes_below(self, uid: str, directory: Path) -> Iterator[MountedVolume]:
        for plugin in _sorted_entries(directory):
            for path in () if plugin.name in _OF_THIS_NODE else _sorted_entries(plugin):
                if plugin.name == CSI_PLUGIN.replace("/", "~"):
                    yield _read_csi_volume(uid, path)
                else:
                    yield _foreign_volume(uid, path, f"the agent cannot unmount volumes of {_plugin_name(plugin)}")

    def _block_volumes_below(self, uid: str, directory: Path) -> Iterator[MountedVolume]:
        for plugin in _sorted_entries(directory):
            for path in _sorted_entries(plugin):
                yield _foreign_volume(uid, path, "the agent cannot unmap block volumes")


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


def _read_csi_volume(uid: str, path: Path) -> MountedVolume:
    try:
        data = json.loads((path / DATA_FILE).read_text())
        driver, handle = data["driverName"], data["volumeHandle"]
        inline = data.get("volumeLifecycleMode") == "Ephemeral"
        name = data.get("specVolID") or path.name
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return _foreign_volume(uid, path, f"{path / DATA_FILE} cannot be read: {type(error).__name__}: {error}")
    if not (isinstance(driver, str) and isinstance(handle, str) and driver and handle and "/" not in driver):
        return _foreign_volume(uid, path, f"{path / DATA_FILE} names no driver and handle")
    return MountedVolume(
        uid=uid, name=str(name), plugin=CSI_PLUGIN, path=str(path), driver=driver, handle=handle, inline=inline
    )


def _remove_mount_directory(path: Path) -> None:
    """The mount point, the kubelet's file beside it, and the directory of both (csi_mounter.go: removeMountDir)."""
    for remove in (path.rmdir, (path.parent / DATA_FILE).unlink, path.parent.rmdir):
        try:
            remove()
        except FileNotFoundError:
            pass
