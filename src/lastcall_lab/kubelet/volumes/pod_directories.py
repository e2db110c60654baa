"""The directories of a node's pods on disk; the operations are small and run synchronously."""

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from lastcall.adapters.csi.kubelet_directories import DATA_FILE
from lastcall.adapters.kube.resources import Object
from lastcall.model.node_volumes import CSI_PLUGIN
from lastcall_lab.kubelet.volumes import atomic_files


class PodDirectories:
    """``driver_port.VolumeDirectories`` in the kubelet's layout: ``<directory>/<uid>/volumes/<plugin>/<volume>``.

    A persistent volume has the file ``vol_data.json`` beside its mount point ``mount``, as in the kubelet
    (pkg/volume/csi). Whoever unmounts the volume for a stopped kubelet removes both, so the record goes with the mount.
    A block device is a link below ``volumeDevices``, with which its record ``devices/<volume>`` loses its meaning.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def volume_path(self, uid: str, name: str) -> Path:
        """The mount point of a pod's persistent volume; of a block device the link to it."""
        record = self._device_record(uid, name)
        return _device_link(record) if record.exists() else self._persistent(uid) / name / "mount"

    def make_empty(self, uid: str, name: str) -> Path:
        """Creates a world-writable empty directory; leaves an existing one unchanged."""
        path = self._volumes(uid, "kubernetes.io~empty-dir") / name
        with contextlib.suppress(FileExistsError):
            path.mkdir(parents=True)
            path.chmod(0o777)
        return path

    def write_projection(self, uid: str, name: str, files: Mapping[str, tuple[bytes, int]]) -> Path:
        """Makes a directory hold exactly these files (content and mode), replaced atomically."""
        path = self._volumes(uid, "kubernetes.io~projected") / name
        atomic_files.write_directory(path, files)
        return path

    def record_mount(self, uid: str, name: str, record: Object) -> Path:
        """Records a mount before the driver is called, so that a restarted kubelet can unmount it."""
        if record["claim"]["spec"].get("volumeMode") == "Block":
            return self._record_device(uid, name, record)
        path = self.volume_path(uid, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / DATA_FILE).write_bytes(msgspec.json.encode(record))
        return path

    def mount_records(self, uid: str) -> dict[str, Object]:
        """The records of a pod's persistent volumes, by volume."""
        files = {file.parent.name: file for file in sorted(self._persistent(uid).glob(f"*/{DATA_FILE}"))}
        devices = sorted((self._directory / uid / "devices").glob("*"))
        files |= {file.name: file for file in devices if _device_link(file).is_symlink()}
        return {name: msgspec.json.decode(file.read_bytes()) for name, file in files.items()}

    def forget_mount(self, uid: str, name: str) -> None:
        """Removes the record and its directory."""
        if (record := self._device_record(uid, name)).exists():
            _device_link(record).unlink(missing_ok=True)
            record.unlink()
            return
        directory = self.volume_path(uid, name).parent
        (directory / DATA_FILE).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            directory.rmdir()

    def pod_uids(self) -> list[str]:
        """The uids of the pods that have a directory."""
        return sorted(path.name for path in self._directory.iterdir()) if self._directory.exists() else []

    def remove(self, uid: str) -> None:
        """Removes all directories of a pod. The caller has unmounted its volumes before."""
        shutil.rmtree(self._directory / uid, ignore_errors=True)

    def host_path_problem(self, path: str, kind: str) -> str:
        """Why a hostPath cannot be used; empty if it can. Creates it if its type demands that."""
        place = Path(path)
        if kind == "DirectoryOrCreate":
            place.mkdir(parents=True, exist_ok=True)
        if kind == "FileOrCreate" and not place.exists():
            place.touch()
        if kind in ("Directory", "DirectoryOrCreate") and not place.is_dir():
            return f"hostPath type check failed: {path} is not a directory"
        if kind in ("File", "FileOrCreate") and not place.is_file():
            return f"hostPath type check failed: {path} is not a file"
        return ""

    def _record_device(self, uid: str, name: str, record: Object) -> Path:
        file = self._device_record(uid, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.encode(record))
        link = _device_link(file)
        link.parent.mkdir(parents=True, exist_ok=True)
        return link

    def _device_record(self, uid: str, name: str) -> Path:
        return self._directory / uid / "devices" / name

    def _persistent(self, uid: str) -> Path:
        return self._volumes(uid, CSI_PLUGIN.replace("/", "~"))

    def _volumes(self, uid: str, plugin: str) -> Path:
        return self._directory / uid / "volumes" / plugin


def _device_link(record: Path) -> Path:
    """The link to a block device, named after its PersistentVolume; the driver makes it."""
    claim = msgspec.json.decode(record.read_bytes())["claim"]
    directory = record.parents[1] / "volumeDevices" / CSI_PLUGIN.replace("/", "~")
    return directory / str(claim["spec"]["volumeName"])
