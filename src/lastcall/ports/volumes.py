"""Port through which an agent unmounts the volumes of ended pods while the kubelet is stopped."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from lastcall.model.node_volumes import Filesystem, MountedVolume, VolumeState


class NodeVolumes(Protocol):
    """The volumes that the node's kubelet has mounted.

    Each step may be repeated: one that is done already succeeds. The methods raise Unavailable or another LastcallError
    with the reason; a step that raises or is cancelled may have taken effect. Times are in seconds.
    """

    async def list_volumes(self, uid: str) -> Sequence[MountedVolume]:
        """The volumes of the pod with this uid that have to be unmounted, without those that only this node has.

        Unavailable if the kubelet's directory of the pod cannot be read.
        """
        ...

    async def read_state(self, volume: MountedVolume, known: AbstractSet[Filesystem] = frozenset()) -> VolumeState:
        """How far the volume is unmounted, from the mount table; ``known`` are file systems that it has had."""
        ...

    async def unmount_subpaths(self, paths: Sequence[str]) -> None:
        """Unmounts the mounts that the kubelet has made for subPath."""
        ...

    async def unpublish(self, volume: MountedVolume, within: float) -> None:
        """Asks the driver to unmount the volume from the pod (NodeUnpublishVolume)."""
        ...

    async def unstage(self, volume: MountedVolume, within: float) -> None:
        """Asks the driver to unmount the volume from the node (NodeUnstageVolume), if it has that capability."""
        ...

    async def forget(self, volume: MountedVolume, *, staged: bool) -> None:
        """Removes the kubelet's directory of the volume below the pod, with ``staged`` also that below its plugin.

        So a kubelet finds what it leaves itself. Removes nothing that is mounted.
        """
        ...
