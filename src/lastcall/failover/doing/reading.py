"""What was read live of a node last, for who follows at once: the steps of one failover do not each read the same again."""

import asyncio

from lastcall.errors import Unavailable
from lastcall.failover.deciding import steps
from lastcall.failover.doing.observing import Observing
from lastcall.failover.doing.outside import Cluster
from lastcall.failover.knowing import unread
from lastcall.failover.knowing.sightings import Sightings
from lastcall.failover.knowing.unread import Unread
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import LiveNode
from lastcall.ports import Clock

LASTS = 0.7
"""Seconds, from the question on, for which it serves the next decision, and the first call of what was decided."""
NEVER = float("-inf")


class Reading:
    """The Node with its Lease, and its last word. ``asked``: when for the first two, on the clock's boottime."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._unread: Unread | None = None
        """About the last word; it outlives the rounds."""
        self.drop()

    def drop(self) -> None:
        """Who comes next reads anew."""
        self._node: LiveNode | None = None
        self.asked = NEVER
        self._known: tuple[float, float | None] = (NEVER, None)
        self._shutdown: NodeShutdown | None = None
        self._shutdown_asked = NEVER

    async def anew(self, seen: Sightings) -> LiveNode:
        """Both as they are now; ``seen`` is told. NotFound if there is no such Node."""
        asked, known = self._clock.boottime(), seen.revisions
        node, lease = await asyncio.gather(self._cluster.node(seen.name), self._cluster.lease(seen.name))
        now = self._clock.boottime()
        seen.node(node, now, since=known[0])
        if lease:
            seen.lease(lease, now, since=known[1])
        self._node, self.asked, self._known = node, asked, (seen.observed, seen.heard)
        return node

    def written(self, node: LiveNode) -> None:
        """The Node as the answer to our own write shows it. That says nothing of the Lease: both are as old as they were."""
        if self._node is not None:
            self._node = node

    def now(self, seen: Sightings) -> LiveNode | None:
        """The Node, if it is not too old, and neither a newer one nor a sign of life was seen since; else None."""
        node, same = self._node, self._known == (seen.observed, seen.heard)
        old = self._clock.boottime() >= self.asked + LASTS
        return None if node is None or old or not same or seen.overtaken(node) else node

    async def shutdown(self, name: str, observing: Observing) -> NodeShutdown | None:
        """A node's own word on its going down, not older than that; ``observing`` is told. None if there is none.

        It is asked for although no watch has told of any: one that is silent says nothing of it, and it holds fencing back.
        """
        asked, known = self._clock.boottime(), observing.word(name)
        if asked >= self._shutdown_asked + LASTS:
            self._shutdown = await self._word(name)
            self._shutdown_asked = asked
            if self._shutdown:
                observing.look_at_shutdown(name, self._shutdown, self._clock.boottime(), since=known)
        return self._shutdown

    async def _word(self, name: str) -> NodeShutdown | None:
        """None also if it could not be read for so long that it is not asked for any more, for a while."""
        if self._unread and self._unread.given_up(self._clock.boottime()):
            return None
        try:
            word = await self._cluster.shutdown(name)
        except Unavailable:
            self._unread = unread.failed(self._unread, self._clock.boottime())
            raise
        self._unread = None
        return word


def serves(step: steps.Step) -> bool:
    """Whether what comes after ``step``, which was carried out, may be decided by what was read before it.

    So it may after our own calls about the node's objects, which change neither its boot nor its Lease. After a word with a
    fence, and after time has passed, the node is looked at anew.
    """
    return isinstance(step, steps.Mark | steps.Taint | steps.Delete | steps.ForceDelete | steps.Detach)
