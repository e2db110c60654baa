"""Made sure of, live, before what cannot be undone: that we lead, that the mark is ours, and that the boot is the same."""

import asyncio
from collections.abc import Iterable

from lastcall import names
from lastcall.errors import NotFound, RefusedForSafety
from lastcall.failover.deciding.case import NodeNow
from lastcall.failover.doing.outside import Cluster, Leadership
from lastcall.failover.knowing import owner
from lastcall.failover.knowing.owner import OwnerMark
from lastcall.failover.knowing.sightings import Sightings
from lastcall.model.observed import LiveNode
from lastcall.model.tolerations import Taint
from lastcall.ports import Clock

HOLDS = 1.0
"""Seconds, from the question on, for which what was made sure of holds for the next call of the same step: pods go by the
hundred. Nothing is left to a watch meanwhile, which may be silent: the Node and its Lease are read live each time."""
AHEAD = 0.7
"""Seconds after which one call looks again while the others go on: all would wait else, once a second, for a busy server."""
NEVER = float("-inf")


class Surety:
    """For one step about one boot of a node; ``observed``, ``heard`` and ``node`` as the decision was made with.

    A sign of life since then undoes it, and so does a person who takes the mark or the taint away. ``read`` is the Node
    as it was read live for the decision, and when that and its Lease were asked for: for ``check`` it is a first look.
    """

    def __init__(
        self,
        cluster: Cluster,
        leadership: Leadership,
        clock: Clock,
        seen: Sightings,
        *,
        me: str,
        boot_id: str,
        observed: float,
        heard: float | None,
        node: NodeNow | None,
        read: tuple[LiveNode | None, float] = (None, NEVER),
    ) -> None:
        self._cluster = cluster
        self._leadership = leadership
        self._clock = clock
        self._seen = seen
        self._me = me
        self._boot_id = boot_id
        self._known = (observed, heard)
        self._decided = node
        self._read = read
        self._at = NEVER
        self._lock = asyncio.Lock()
        self._looking = False

    async def check(self) -> None:
        """RefusedForSafety if it is not so any more; the API's error if that cannot be known."""
        if self._fresh():
            return
        async with self._lock:
            if not self._fresh():
                await self._again()

    async def _again(self) -> None:
        """What is not so any more holds for nobody, however short a time ago it was so."""
        self._looking = True
        try:
            if not await self._already():
                await self.look()
        except BaseException:
            self._at = NEVER
            raise
        finally:
            self._looking = False

    async def _already(self) -> bool:
        """Whether what the decision was made from is new enough, once; so may be the last renewal of our own lease."""
        (node, asked), self._read = self._read, (None, NEVER)
        now, led = self._clock.boottime(), self._leadership.renewed
        if node is None or now >= asked + AHEAD:
            return False
        if now >= led + AHEAD:
            if not await self._leadership.confirm():
                raise RefusedForSafety(f"{self._me} does not lead any more")
            led = now
        if self._seen.overtaken(node):
            return False
        self._judge(node)
        self._at = min(asked, led)
        return self._fresh()

    async def look(self) -> LiveNode:
        """The same, always read anew; the Node as it is. What is asked at the same time is as old as the question."""
        began, name, known = self._clock.boottime(), self._seen.name, self._seen.revisions
        try:
            leads, node, renewed = await asyncio.gather(
                self._leadership.confirm(), self._cluster.node(name), self._cluster.lease(name)
            )
        except NotFound:
            raise RefusedForSafety(f"node {name} is gone") from None
        if not leads:
            raise RefusedForSafety(f"{self._me} does not lead any more")
        now = self._clock.boottime()
        self._seen.node(node, now, since=known[0])
        if renewed:
            self._seen.lease(renewed, now, since=known[1])
        self._judge(node)
        self._at = began
        return node

    def _judge(self, node: LiveNode) -> None:
        """RefusedForSafety if the Node, or what was heard of it, is not what the decision was made from."""
        name = self._seen.name
        if node.status.node_info.boot_id != self._boot_id:
            raise RefusedForSafety(f"node {name} has another boot id by now: {node.status.node_info.boot_id}")
        if self._seen.observed != self._known[0]:
            raise RefusedForSafety(
                f"what the API server says of node {name} is older than what it said before, or it was deleted"
            )
        if self._seen.heard != self._known[1]:
            raise RefusedForSafety(f"node {name} was heard of meanwhile")
        mark = owner.read(node.mark)
        if mark is not None and not (isinstance(mark, OwnerMark) and mark.by == self._me):
            raise RefusedForSafety(f"the mark on node {name} is not {self._me}'s any more")
        if self._decided and (
            node.mark != self._decided.mark_text
            or _out_of_service(node.spec.taints) != _out_of_service(self._decided.taints)
        ):
            raise RefusedForSafety(f"somebody has changed the mark or the taint out-of-service of node {name}")

    def _fresh(self) -> bool:
        """What was heard of the node meanwhile by the watch counts at once."""
        held = self._clock.boottime() < self._at + (HOLDS if self._looking else AHEAD)
        return held and self._leadership.leads and (self._seen.observed, self._seen.heard) == self._known


def _out_of_service(taints: Iterable[Taint]) -> set[tuple[str, str]]:
    """Value and effect of each taint out-of-service."""
    return {(one.value, one.effect) for one in taints if one.key == names.OUT_OF_SERVICE}
