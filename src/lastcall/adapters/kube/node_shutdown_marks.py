"""The shutdowns that agents record on their Nodes, kept up to date by a watch."""

from collections.abc import Mapping
from datetime import datetime
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.adapters.kube.resources import NODES
from lastcall.aio import Signal
from lastcall.model.guard_facts import GuardedNode
from lastcall.model.shutdown_node import read_mark
from lastcall.ports.node import Clock


class NodeShutdownMarks:
    """``ports.guard_cluster.NodeShutdowns``, as long as ``run`` runs. Needs list and watch on nodes.

    No copy of the Nodes is kept but what the informer needs: names, annotations and taints.
    """

    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self._informer = Informer(client, NODES.with_shape(GuardedNode), clock=clock, random=random)
        self._deadlines: dict[str, datetime] = {}
        self._changed = Signal()
        self._changes = 0

    @property
    def deadlines(self) -> Mapping[str, datetime]:
        """``NodeShutdowns.deadlines``."""
        return self._deadlines

    @property
    def changes(self) -> int:
        """``NodeShutdowns.changes``."""
        return self._changes

    async def wait_for_change(self, seen: int) -> int:
        """``NodeShutdowns.wait_for_change``."""
        while self._changes == seen:
            await self._changed.next()
        return self._changes

    async def run(self) -> None:
        """Follows the Nodes without end."""
        async for change in self._informer.changes():
            mark = read_mark(change.new.metadata.annotations) if change.new else None
            after = mark.deadline if mark and change.kind is not ChangeKind.DELETED else None
            if change.kind is not ChangeKind.SYNCED and after != self._deadlines.get(change.key.name):
                self._note_change(change.key.name, after)

    def _note_change(self, name: str, deadline: datetime | None) -> None:
        if deadline:
            self._deadlines[name] = deadline
        else:
            self._deadlines.pop(name, None)
        self._changes += 1
        self._changed.set()
