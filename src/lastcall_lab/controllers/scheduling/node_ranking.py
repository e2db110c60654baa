"""Ranks nodes for pods that every node judges alike (pure); few nodes change between two such pods."""

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
"""The number of cached rankings."""


class _NodeRank(NamedTuple):
    """Lower is better: PreferNoSchedule taints, load, number of pods, name."""

    unwelcome: int
    load: tuple[float, Fraction]
    pods: int
    name: str


class NodeRanking:
    """The ranked nodes, and the rejections of the others, as of the last ``renew``."""

    def __init__(self, rooms: Mapping[str, SchedulingNode]) -> None:
        """``rooms`` are the nodes by name; later changes to it take effect at ``renew``."""
        self._rooms = rooms
        self._stale = set(rooms)
        self._places: dict[str, _NodeRank] = {}
        self._order: list[_NodeRank] = []
        self._rejections: dict[str, NodeRejection] = {}

    @property
    def rejections(self) -> Collection[NodeRejection]:
        """The rejections of unfit nodes, in no particular order."""
        return self._rejections.values()

    def mark_changed(self, name: str) -> None:
        """Marks a node as changed."""
        self._stale.add(name)

    def renew(self, judge: Callable[[SchedulingNode], NodeVerdict]) -> None:
        """Judges each changed node again."""
        for name in self._stale:
            self._rejections.pop(name, None)
            if place := self._places.pop(name, None):
                del self._order[bisect.bisect_left(self._order, place)]
            if room := self._rooms.get(name):
                self._insert(room, judge(room))
        self._stale.clear()

    def best_node(self, kin: Callable[[SchedulingNode], int], *, kept: str = "") -> SchedulingNode | None:
        """The node ``kept`` if it fits; else the least tainted node with the fewest ``kin``.

        None if no node fits.
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
    """A cache of the rankings for the latest kinds of pods; all of them learn of changed nodes."""

    def __init__(self) -> None:
        self.rooms = SchedulingNodes(self._mark_changed)
        self._known: dict[bytes, NodeRanking] = {}

    def ranking_for(self, likeness: bytes) -> NodeRanking:
        """The ranking for pods of one likeness; for an empty likeness a new one that is not cached."""
        found = self._known.pop(likeness, None) or NodeRanking(self.rooms.rooms)
        if likeness:
            self._known[likeness] = found
        if len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        return found

    def _mark_changed(self, name: str) -> None:
        for ranking in self._known.values():
            ranking.mark_changed(name)
