"""What a kubelet needs from its machine for volumes: the storage driver's node part, and pod directories."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from lastcall.adapters.kube.resources import Object


class NodeVolumeDriver(Protocol):
    """Persistent volumes on one node.

    Both methods raise LastcallError with a readable message; the kubelet then retries.
    """

    async def mount(self, pod: Object, claim: Object, path: Path) -> None:
        """Mounts the volume of a bound claim at ``path``, which must not exist. Idempotent.

        If the claim has the volumeMode Block, ``path`` becomes a link to the device instead.
        A volume of an attachable kind is already attached to this node.
        """
        ...

    async def unmount(self, pod: Object, claim: Object, path: Path) -> None:
        """Unmounts the volume and removes ``path``. Idempotent."""
        ...


class VolumeDirectories(Protocol):
    """The directories of a node's pods, which survive kubelet restarts. Raises OSError."""

    def volume_path(self, uid: str, name: str) -> Path:
        """The path of a pod's volume."""
        ...

    def make_empty(self, uid: str, name: str) -> Path:
        """Creates a world-writable empty directory; leaves an existing one unchanged."""
        ...

    def write_projection(self, uid: str, name: str, files: Mapping[str, tuple[bytes, int]]) -> Path:
        """Makes a directory hold exactly these files (content and mode)."""
        ...

    def record_mount(self, uid: str, name: str, record: Object) -> Path:
        """Records a mount before the driver is called, so that a restarted kubelet can unmount it."""
        ...

    def mount_records(self, uid: str) -> dict[str, Object]:
        """The records of a pod's persistent volumes, by volume."""
        ...

    def forget_mount(self, uid: str, name: str) -> None:
        """Removes the record."""
        ...

    def pod_uids(self) -> list[str]:
        """The sorted uids of the pods that have a directory."""
        ...

    def remove(self, uid: str) -> None:
        """Removes all directories of a pod. The caller has unmounted its volumes before."""
        ...

    def host_path_problem(self, path: str, kind: str) -> str:
        """Why a hostPath cannot be used; empty if it can. Creates it if its type demands that."""
        ...
