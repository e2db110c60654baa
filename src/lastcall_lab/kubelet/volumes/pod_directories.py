"""The directories of a node's pods: small things, done in place of the caller."""

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from lastcall.adapters.kube.resources import Object
from lastcall_lab.kubelet.volumes import atomic_files


class PodDirectories:
    """``volume_port.Directories``: ``<directory>/<uid>/volumes/<volume>``, and ``claims/<volume>.json`` for each persistent volume that is mounted."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def volume_path(self, uid: str, name: str) -> Path:
        """Where a volume of a pod is."""
        return self._directory / uid / "volumes" / name

    def make_empty(self, uid: str, name: str) -> Path:
        """An empty directory that everybody may write to; one that is there is left as it is."""
        path = self.volume_path(uid, name)
        with contextlib.suppress(FileExistsError):
            path.mkdir(parents=True)
            path.chmod(0o777)
        return path

    def write_projection(self, uid: str, name: str, files: Mapping[str, tuple[bytes, int]]) -> Path:
        """A directory with these files (content and mode) and no others; all are replaced at once."""
        path = self.volume_path(uid, name)
        atomic_files.write_directory(path, files)
        return path

    def record_mount(self, uid: str, name: str, record: Object) -> Path:
        """Where the driver is to mount, noted first: a later life of the kubelet may have to unmount it."""
        record_path = self._record_path(uid, name)
        record_path.parent.mkdir(parents=True, exist_ok=True)
        record_path.write_bytes(msgspec.json.encode(record))
        self.volume_path(uid, name).parent.mkdir(parents=True, exist_ok=True)
        return self.volume_path(uid, name)

    def mount_records(self, uid: str) -> dict[str, Object]:
        """The records of a pod's persistent volumes, by volume."""
        directory = self._directory / uid / "claims"
        if not directory.exists():
            return {}
        return {file.stem: msgspec.json.decode(file.read_bytes()) for file in sorted(directory.iterdir())}

    def forget_mount(self, uid: str, name: str) -> None:
        """The record goes."""
        self._record_path(uid, name).unlink(missing_ok=True)

    def pod_uids(self) -> list[str]:
        """The uids of the pods that have a directory."""
        return sorted(path.name for path in self._directory.iterdir()) if self._directory.exists() else []

    def remove(self, uid: str) -> None:
        """All of a pod. What its driver has mounted is not there any more."""
        shutil.rmtree(self._directory / uid, ignore_errors=True)

    def host_path_problem(self, path: str, kind: str) -> str:
        """Why a hostPath cannot be used; empty if it can. What it may be asked to make is made."""
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

    def _record_path(self, uid: str, name: str) -> Path:
        return self._directory / uid / "claims" / f"{name}.json"
