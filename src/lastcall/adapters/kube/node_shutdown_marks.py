"""The shutdowns that agents record on their Nodes, kept up to date by a watch."""

from collections.abc import Mapping
from datetime import datetime
from random import Random

from msgspec import field

from lastcall import names
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.adapters.kube.resources import NODES
from lastcall.aio import ChangeCounter
from lastcall.model.base import Facts
from lastcall.model.shutdown_node import read_mark
from lastcall.ports.node import Clock


class _Annotations(Facts, frozen=True):
    mark: str | None = field(default=None, name=names.NODE_SHUTDOWN_MARK)


class _Metadata(Facts, frozen=True):
    name: str = ""
    annotations: _Annotations | None = None


class _MarkedNode(Facts, frozen=True):
    """A Node without anything but its mark: a cluster may have 5,000, each with kilobytes of annotations."""

    metadata: _Metadata

    @property
    def deadline(self) -> datetime | None:
        text = self.metadata.annotations.mark if self.metadata.annotations else None
        mark = read_mark({names.NODE_SHUTDOWN_MARK: text}) if text is not None else None
        return mark.deadline if mark else None


class NodeShutdownMarks:
    """``ports.guard_cluster.NodeShutdowns``, as long as ``run`` runs. Needs list and watch on nodes."""

    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self._informer = Informer(client, NODES.with_shape(_MarkedNode), clock=clock, random=random)
        self._deadlines: dict[str, datetime] = {}
        self._changes = ChangeCounter()

    @property
    def deadlines(self) -> Mapping[str, datetime]:
        """``NodeShutdowns.deadlines``."""
        return self._deadlines

    @property
    def changes(self) -> int:
        """``NodeShutdowns.changes``."""
        return self._changes.count

    async def wait_for_change(self, seen: int) -> int:
        """``NodeShutdowns.wait_for_change``."""
        return await self._changes.wait_for_change(seen)

    async def run(self) -> None:
        """Follows the Nodes without end."""
        async for change in self._informer.changes():
            after = change.new.deadline if change.new and change.kind is not ChangeKind.DELETED else None
            if change.kind is not ChangeKind.SYNCED and after != self._deadlines.get(change.key.name):
                self._note_change(change.key.name, after)

    def _note_change(self, name: str, deadline: datetime | None) -> None:
        if deadline:
            self._deadlines[name] = deadline
        else:
            self._deadlines.pop(name, None)
        self._changes.add()
