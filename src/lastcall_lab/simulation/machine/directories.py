"""The directories of a node's pods where no file may be touched: ``kubelet.volume_port.Directories`` in memory."""

from collections.abc import Mapping
from pathlib import Path

from lastcall.adapters.kube.resources import Object

_ROOT = Path("/pods")


class InMemoryPodDirectories:
    """They outlive the kubelet, and a power cut."""

    def __init__(self) -> None:
        self._volumes: dict[str, set[str]] = {}
        self._claims: dict[str, dict[str, Object]] = {}

    def volume_path(self, uid: str, name: str) -> Path:
        """Nothing is there."""
        return _ROOT / uid / "volumes" / name

    def make_empty(self, uid: str, name: str) -> Path:
        """Remembers it."""
        self._volumes.setdefault(uid, set()).add(name)
        return self.volume_path(uid, name)

    def write_projection(self, uid: str, name: str, files: Mapping[str, tuple[bytes, int]]) -> Path:
        """Remembers that it is there; what is in it nobody reads."""
        return self.make_empty(uid, name)

    def record_mount(self, uid: str, name: str, record: Object) -> Path:
        """Remembers the record."""
        self._claims.setdefault(uid, {})[name] = record
        return self.make_empty(uid, name)

    def mount_records(self, uid: str) -> dict[str, Object]:
        """The records of a pod's persistent volumes, by volume."""
        return dict(self._claims.get(uid, {}))

    def forget_mount(self, uid: str, name: str) -> None:
        """The record goes."""
        self._claims.get(uid, {}).pop(name, None)

    def pod_uids(self) -> list[str]:
        """The uids of the pods that have a directory."""
        return sorted({*self._volumes, *self._claims})

    def remove(self, uid: str) -> None:
        """All of a pod."""
        self._volumes.pop(uid, None)
        self._claims.pop(uid, None)

    def host_path_problem(self, path: str, kind: str) -> str:
        """Whatever a pod asks of its machine is there."""
        return ""
