"""Who could write which volume, and when: the ground truth that every failover is judged by (pure).

A node can write a volume while the volume is attached to it, one of its pods has it mounted for writing, the node runs,
and its way to the storage is not cut. What the API server says of attachments does not matter here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum


class What(Enum):
    """What has happened."""

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
class Record:
    """One thing that has happened at ``at`` (boottime of the lab's clock, in seconds)."""

    at: float
    what: What
    node: str
    volume: str = ""
    pod: str = ""
    """The uid of the pod that mounted, unmounted or wrote."""
    shared: bool = False
    """Of ATTACHED: whether the volume may be at several nodes at a time."""
    read_only: bool = False
    """Of MOUNTED."""


class Fault(Enum):
    """What must never happen to a volume that is for one node at a time."""

    TWO_WRITERS = "two nodes could write it"
    DETACHED_IN_USE = "it was detached from a node that could still write"


@dataclass(frozen=True)
class Violation:
    """A moment at which it has happened, and the nodes that could write."""

    at: float
    volume: str
    fault: Fault
    nodes: tuple[str, ...]


@dataclass
class _World:
    """What is so after the records so far."""

    attached: set[tuple[str, str]] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    mounts: set[tuple[str, str, str]] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)

    def writers(self, volume: str) -> tuple[str, ...]:
        """The nodes that can write it."""
        mounted = {node for name, node, _ in self.mounts if name == volume}
        return tuple(sorted(node for node in mounted - self.cut if (volume, node) in self.attached))

    def apply(self, record: Record) -> None:
        """One more record."""
        volume, node = record.volume, record.node
        match record.what:
            case What.ATTACHED:
                self.attached.add((volume, node))
                (self.shared.add if record.shared else self.shared.discard)(volume)
            case What.DETACHED:
                self.attached.discard((volume, node))
            case What.MOUNTED if not record.read_only:
                self.mounts.add((volume, node, record.pod))
            case What.UNMOUNTED:
                self.mounts.discard((volume, node, record.pod))
            case What.CUT:
                self.cut.add(node)
            case What.MENDED:
                self.cut.discard(node)
            case What.OFF:
                self.mounts = {one for one in self.mounts if one[1] != node}
            case _:
                pass


def violations(records: Iterable[Record]) -> list[Violation]:
    """Every moment at which a rule was broken; a state that lasts is told when it begins."""
    world, found = _World(), []
    doubled: set[str] = set()
    for record in records:
        before = world.writers(record.volume)
        if record.what is What.DETACHED and record.node in before:
            found.append(Violation(record.at, record.volume, Fault.DETACHED_IN_USE, before))
        world.apply(record)
        for volume in sorted({name for name, _, _ in world.mounts}):
            writers = world.writers(volume)
            if len(writers) < 2 or volume in world.shared:
                doubled.discard(volume)
            elif volume not in doubled:
                doubled.add(volume)
                found.append(Violation(record.at, volume, Fault.TWO_WRITERS, writers))
    return found
