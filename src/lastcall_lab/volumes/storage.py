"""The storage behind the toy driver: attachments, mounts, writers, and a record of all changes."""

from collections.abc import Sequence
from pathlib import Path

from lastcall.errors import Unavailable
from lastcall.ports.node import Clock
from lastcall_lab.volumes.volume_events import VolumeEvent, VolumeEventType
from lastcall_lab.volumes.volume_store import VolumeStore


class Storage:
    """One for the whole lab. It obeys every request; ``volume_events.find_violations`` reports early detachments."""

    def __init__(self, shelf: VolumeStore, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock
        self._attached: set[tuple[str, str]] = set()
        self._mounts: dict[tuple[str, str, str], bool] = {}
        self._cut: set[str] = set()
        self.records: list[VolumeEvent] = []
        """All events, in order."""

    # -- what the driver's controller does -----------------------------------------------------------------------------

    async def make(self, handle: str) -> None:
        """Makes a volume, unless it exists."""
        await self._shelf.make(handle)

    async def remove(self, handle: str) -> None:
        """Removes a volume and its files."""
        await self._shelf.remove(handle)

    async def attach(self, handle: str, node: str, shared: bool) -> None:
        """Allows the node to mount it from now on. Makes a missing volume."""
        await self._shelf.make(handle)
        if (handle, node) in self._attached:
            return
        self._attached.add((handle, node))
        self._record_event(VolumeEventType.ATTACHED, node, handle, shared=shared)
        if node not in self._cut:
            await self._shelf.open(handle, node)

    async def detach(self, handle: str, node: str) -> None:
        """Forbids the node to mount or write it from now on, also where it is mounted."""
        if (handle, node) in self._attached:
            self._attached.discard((handle, node))
            self._record_event(VolumeEventType.DETACHED, node, handle)
            await self._shelf.shut(handle, node)

    def is_attached(self, handle: str, node: str) -> bool:
        """Whether the storage grants the node access."""
        return (handle, node) in self._attached

    # -- what becomes of nodes -----------------------------------------------------------------------------------------

    async def cut(self, node: str) -> None:
        """Cuts the node off from the storage: its writes fail."""
        if node in self._cut:
            return
        self._cut.add(node)
        self._record_event(VolumeEventType.CUT, node)
        for handle in self._mounts_of(node):
            await self._shelf.shut(handle, node)

    async def mend(self, node: str) -> None:
        """Restores the node's access."""
        if node not in self._cut:
            return
        self._cut.discard(node)
        self._record_event(VolumeEventType.MENDED, node)
        for handle in self._mounts_of(node):
            await self._shelf.open(handle, node)

    def drop_mounts(self, node: str) -> None:
        """All processes of the node have ended: drops its mounts, but not its attachments."""
        self._mounts = {place: read_only for place, read_only in self._mounts.items() if place[1] != node}
        self._record_event(VolumeEventType.OFF, node)

    def _mounts_of(self, node: str) -> list[str]:
        return sorted(handle for handle, name in self._attached if name == node)

    # -- what a node does ----------------------------------------------------------------------------------------------

    def mounts_of(self, node: str) -> Sequence[tuple[str, str]]:
        """Volume and pod (by its uid) of all mounts of a node."""
        return sorted((handle, pod) for handle, name, pod in self._mounts if name == node)

    async def mount(self, handle: str, node: str, pod: str, path: Path, *, read_only: bool = False) -> None:
        """Mounts it at ``path`` for a pod (by its uid).

        Raises Unavailable if it is not attached there, or out of reach.
        """
        if why := self._unreachable_reason(handle, node):
            raise Unavailable(f"volume {handle} cannot be mounted: node {node} {why}")
        await self._shelf.link(handle, node, path)
        if (handle, node, pod) not in self._mounts:
            self._mounts[handle, node, pod] = read_only
            self._record_event(VolumeEventType.MOUNTED, node, handle, pod=pod, read_only=read_only)

    async def unmount(self, handle: str, node: str, pod: str, path: Path) -> None:
        """Unmounts it from ``path`` for the pod. A missing mount is not an error."""
        await self._shelf.unlink(path)
        if self._mounts.pop((handle, node, pod), None) is not None:
            self._record_event(VolumeEventType.UNMOUNTED, node, handle, pod=pod)

    async def write(self, handle: str, node: str, pod: str, name: str, line: bytes) -> None:
        """Appends a line to a file of the volume, and records it. Unavailable, also recorded, if that is forbidden."""
        if why := self._unreachable_reason(handle, node) or self._unwritable_reason(handle, node, pod):
            self._record_event(VolumeEventType.FAILED, node, handle, pod=pod)
            raise Unavailable(f"volume {handle} cannot be written: node {node} {why}")
        self._record_event(VolumeEventType.WROTE, node, handle, pod=pod)
        await self._shelf.append(handle, node, name, line)

    def _unreachable_reason(self, handle: str, node: str) -> str:
        if node in self._cut:
            return "cannot reach the storage"
        return "" if (handle, node) in self._attached else "does not have it attached"

    def _unwritable_reason(self, handle: str, node: str, pod: str) -> str:
        read_only = self._mounts.get((handle, node, pod))
        if read_only is None:
            return "has not mounted it for this pod"
        return "has mounted it for reading only" if read_only else ""

    def _record_event(
        self,
        what: VolumeEventType,
        node: str,
        volume: str = "",
        *,
        pod: str = "",
        shared: bool = False,
        read_only: bool = False,
    ) -> None:
        at = self._clock.boottime()
        self.records.append(
            VolumeEvent(at=at, what=what, node=node, volume=volume, pod=pod, shared=shared, read_only=read_only)
        )
