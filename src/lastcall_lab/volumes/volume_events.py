"""Records which node could write which volume, and when: the ground truth for judging every failover (pure).

A node can write a volume while the volume is attached to it, one of its pods has it mounted for writing, the node runs,
and its connection to the storage is not cut. Attachments at the API server do not matter here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum


class VolumeEventType(Enum):
    """The kinds of events."""

    ATTACHED = "attached"
    DETACHED = "detached"
    MOUNTED = "mounted"
    UNMOUNTED = "unmounted"
    WROTE = "wrote"
    FAILED = "could not write"
    CUT = "cut off from the storage"
    MENDED = "no longer cut off"
    OFF = "lost its power"


@dataclass(frozen=True, kw_only=True)
class VolumeEvent:
    """An event at ``at`` (boottime of the lab's clock, in seconds)."""

    at: float
    what: VolumeEventType
    node: str
    volume: str = ""
    pod: str = ""
    """The uid of the pod that mounted, unmounted or wrote."""
    shared: bool = False
    """Of ATTACHED: whether the volume may be attached to several nodes at a time."""
    read_only: bool = False
    """Of MOUNTED: whether it is mounted for reading only."""


class AccessFault(Enum):
    """What must never happen to a volume for one node at a time."""

    TWO_WRITERS = "two nodes could write it"
    DETACHED_IN_USE = "it was detached from a node that could still write"


@dataclass(frozen=True)
class AccessViolation:
    """A moment of a violation, and the nodes that could write."""

    at: float
    volume: str
    fault: AccessFault
    nodes: tuple[str, ...]


@dataclass
class _AccessState:
    """The state after the events so far."""

    attached: set[tuple[str, str]] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    mounts: set[tuple[str, str, str]] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)

    def current_writers(self, volume: str) -> tuple[str, ...]:
        """The nodes that can write it."""
        mounted = {node for name, node, _ in self.mounts if name == volume}
        return tuple(sorted(node for node in mounted - self.cut if (volume, node) in self.attached))

    def apply_event(self, record: VolumeEvent) -> None:
        """Applies one more event."""
        volume, node = record.volume, record.node
        match record.what:
            case VolumeEventType.ATTACHED:
                self.attached.add((volume, node))
                (self.shared.add if record.shared else self.shared.discard)(volume)
            case VolumeEventType.DETACHED:
                self.attached.discard((volume, node))
            case VolumeEventType.MOUNTED if not record.read_only:
                self.mounts.add((volume, node, record.pod))
            case VolumeEventType.UNMOUNTED:
                self.mounts.discard((volume, node, record.pod))
            case VolumeEventType.CUT:
                self.cut.add(node)
            case VolumeEventType.MENDED:
                self.cut.discard(node)
            case VolumeEventType.OFF:
                self.mounts = {one for one in self.mounts if one[1] != node}
            case _:
                pass


def find_violations(records: Iterable[VolumeEvent]) -> list[AccessViolation]:
    """Every moment at which a rule was broken; a lasting violation is reported when it begins."""
    world, found = _AccessState(), []
    doubled: set[str] = set()
    for record in records:
        before = world.current_writers(record.volume)
        if record.what is VolumeEventType.DETACHED and record.node in before:
            found.append(AccessViolation(record.at, record.volume, AccessFault.DETACHED_IN_USE, before))
        world.apply_event(record)
        for volume in sorted({name for name, _, _ in world.mounts}):
            writers = world.current_writers(volume)
            if len(writers) < 2 or volume in world.shared:
                doubled.discard(volume)
            elif volume not in doubled:
                doubled.add(volume)
                found.append(AccessViolation(record.at, volume, AccessFault.TWO_WRITERS, writers))
    return found
