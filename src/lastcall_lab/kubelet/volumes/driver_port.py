"""What a kubelet asks of its machine for volumes: a storage driver's part on the node, and the directories of pods."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from lastcall.adapters.kube.resources import Object


class NodeVolumeDriver(Protocol):
    """Persistent volumes on one node. Both raise LastcallError, with a message for people, and are then tried again."""

    async def mount(self, pod: Object, claim: Object, path: Path) -> None:
        """Makes the volume of a bound claim appear at ``path``, which is not there; again if it has been done.

        The volume is attached to this node when this is called, if it is of a kind that is attached.
        """
        ...

    async def unmount(self, pod: Object, claim: Object, path: Path) -> None:
        """Takes it away; nothing is at ``path`` afterwards. Again if it has been done."""
        ...


class VolumeDirectories(Protocol):
    """The directories of a node's pods, which outlive its kubelet. OSError as the operating system says it."""

    def volume_path(self, uid: str, name: str) -> Path:
        """Where a volume of a pod is."""
        ...

    def make_empty(self, uid: str, name: str) -> Path:
        """An empty directory that everybody may write to; one that is there is left as it is."""
        ...

    def write_projection(self, uid: str, name: str, files: Mapping[str, tuple[bytes, int]]) -> Path:
        """A directory with these files (content and mode) and no others."""
        ...

    def record_mount(self, uid: str, name: str, record: Object) -> Path:
        """Where the driver is to mount, noted first: a later life of the kubelet may have to unmount it."""
        ...

    def mount_records(self, uid: str) -> dict[str, Object]:
        """The records of a pod's persistent volumes, by volume."""
        ...

    def forget_mount(self, uid: str, name: str) -> None:
        """The record goes."""
        ...

    def pod_uids(self) -> list[str]:
        """The uids of the pods that have a directory, in order."""
        ...

    def remove(self, uid: str) -> None:
        """All of a pod. What its driver has mounted is not there any more."""
        ...

    def host_path_problem(self, path: str, kind: str) -> str:
        """Why a hostPath cannot be used; empty if it can. What it may be asked to make is made."""
        ...
