"""What was read live of a node last, for who follows at once: the steps of one failover do not each read the same again."""

import asyncio

from lastcall.errors import Unavailable
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.controller.controller_ports import FailoverApi
from lastcall.failover.decisions import steps
from lastcall.failover.evidence import read_failures
from lastcall.failover.evidence.node_observations import NodeObservations
from lastcall.failover.evidence.read_failures import ReadFailures
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import LiveNode
from lastcall.ports.node import Clock

LASTS = 0.7
"""Seconds, from the question on, for which it serves the next decision, and the first call of what was decided."""
NEVER = float("-inf")


class NodeReading:
    """The Node with its Lease, and its last word. ``asked``: when for the first two, on the clock's boottime."""

    def __init__(self, cluster: FailoverApi, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._unread: ReadFailures | None = None
        """About the last word; it outlives the rounds."""
        self.drop()

    def drop(self) -> None:
        """Who comes next reads anew."""
        self._node: LiveNode | None = None
        self.asked = NEVER
        self._known: tuple[float, float | None] = (NEVER, None)
        self._shutdown: NodeShutdown | None = None
        self._shutdown_asked = NEVER

    async def read_live(self, seen: NodeObservations) -> LiveNode:
        """Both as they are now; ``seen`` is told. NotFound if there is no such Node."""
        asked, known = self._clock.boottime(), seen.known_revisions
        node, lease = await asyncio.gather(self._cluster.read_node(seen.name), self._cluster.read_node_lease(seen.name))
        now = self._clock.boottime()
        seen.observe_node(node, now, since=known[0])
        if lease:
            seen.observe_lease(lease, now, since=known[1])
        self._node, self.asked, self._known = node, asked, (seen.observed, seen.heard)
        return node

    def note_write(self, node: LiveNode) -> None:
        """The Node as the answer to our own write shows it. That says nothing of the Lease: both are as old as they were."""
        if self._node is not None:
            self._node = node

    def reusable_node(self, seen: NodeObservations) -> LiveNode | None:
        """The Node, if it is not too old, and neither a newer one nor a sign of life was seen since; else None."""
        node, same = self._node, self._known == (seen.observed, seen.heard)
        old = self._clock.boottime() >= self.asked + LASTS
        return None if node is None or old or not same or seen.has_newer_than(node) else node

    async def read_shutdown(self, name: str, observing: ClusterView) -> NodeShutdown | None:
        """A node's own word on its going down, not older than that; ``observing`` is told. None if there is none.

        It is asked for although no watch has told of any: one that is silent says nothing of it, and it holds fencing back.
        """
        asked, known = self._clock.boottime(), observing.shutdown_of(name)
        if asked >= self._shutdown_asked + LASTS:
            self._shutdown = await self._read_shutdown_object(name)
            self._shutdown_asked = asked
            if self._shutdown:
                observing.observe_shutdown(name, self._shutdown, self._clock.boottime(), since=known)
        return self._shutdown

    async def _read_shutdown_object(self, name: str) -> NodeShutdown | None:
        """None also if it could not be read for so long that it is not asked for any more, for a while."""
        if self._unread and self._unread.is_given_up(self._clock.boottime()):
            return None
        try:
            word = await self._cluster.read_shutdown(name)
        except Unavailable:
            self._unread = read_failures.add_failure(self._unread, self._clock.boottime())
            raise
        self._unread = None
        return word


def is_reading_reusable(step: steps.Step) -> bool:
    """Whether what comes after ``step``, which was carried out, may be decided by what was read before it.

    So it may after our own calls about the node's objects, which change neither its boot nor its Lease. After a word with a
    fence, and after time has passed, the node is looked at anew.
    """
    return isinstance(step, steps.Mark | steps.Taint | steps.Delete | steps.ForceDelete | steps.Detach)
