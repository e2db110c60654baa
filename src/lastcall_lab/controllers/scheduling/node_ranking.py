"""Which node is best for pods that every node judges alike (pure): few nodes change between two of them."""

import bisect
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from typing import NamedTuple

from lastcall_lab.controllers.scheduling.scheduling_nodes import (
    NodeRejection,
    NodeVerdict,
    SchedulingNode,
    SchedulingNodes,
)

_MOST = 100
"""Kinds of pods of which the order of the nodes is kept."""


class _NodeRank(NamedTuple):
    """Less is better: taints that only advise against the node, how full it would be, its pods, its name."""

    unwelcome: int
    load: tuple[float, Fraction]
    pods: int
    name: str


class NodeRanking:
    """The nodes in their order, and the rejections of the others, as they were when it was last renewed."""

    def __init__(self, rooms: Mapping[str, SchedulingNode]) -> None:
        """``rooms`` are the nodes by name, as they will be when it is renewed."""
        self._rooms = rooms
        self._stale = set(rooms)
        self._places: dict[str, _NodeRank] = {}
        self._order: list[_NodeRank] = []
        self._rejections: dict[str, NodeRejection] = {}

    @property
    def rejections(self) -> Collection[NodeRejection]:
        """Of each node that does not do, in no order."""
        return self._rejections.values()

    def mark_changed(self, name: str) -> None:
        """There is something new about a node."""
        self._stale.add(name)

    def renew(self, judge: Callable[[SchedulingNode], NodeVerdict]) -> None:
        """Asks for a verdict of each node that has changed."""
        for name in self._stale:
            self._rejections.pop(name, None)
            if place := self._places.pop(name, None):
                del self._order[bisect.bisect_left(self._order, place)]
            if room := self._rooms.get(name):
                self._insert(room, judge(room))
        self._stale.clear()

    def best_node(self, kin: Callable[[SchedulingNode], int], *, kept: str = "") -> SchedulingNode | None:
        """The node ``kept`` if it does; else, of those that are least advised against, the first with the fewest ``kin``.

        None if no node does.
        """
        if kept in self._places:
            return self._rooms[kept]
        best, fewest = None, float("inf")
        for place in self._order:
            if best is not None and (not fewest or place.unwelcome > best.unwelcome):
                break
            if (near := kin(self._rooms[place.name])) < fewest:
                best, fewest = place, near
        return self._rooms[best.name] if best else None

    def _insert(self, room: SchedulingNode, verdict: NodeVerdict) -> None:
        if verdict.rejection:
            self._rejections[room.name] = verdict.rejection
        else:
            place = _NodeRank(verdict.unwelcome, verdict.load, len(room.pods), room.name)
            self._places[room.name] = place
            bisect.insort(self._order, place)


class NodeRankings:
    """Keeps those for the kinds of pods that came last; they are told of what changes."""

    def __init__(self) -> None:
        self.rooms = SchedulingNodes(self._mark_changed)
        self._known: dict[bytes, NodeRanking] = {}

    def ranking_for(self, likeness: bytes) -> NodeRanking:
        """For pods that are alike; without a likeness (empty) a new one, which is not kept."""
        found = self._known.pop(likeness, None) or NodeRanking(self.rooms.rooms)
        if likeness:
            self._known[likeness] = found
        if len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        return found

    def _mark_changed(self, name: str) -> None:
        for ranking in self._known.values():
            ranking.mark_changed(name)
