"""The last live read of a node, reused by directly following steps so that they need not repeat it."""

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
"""Seconds since the request for which a read serves the next decision and the first call of its step."""
NEVER = float("-inf")


class NodeReading:
    """The Node with its Lease, and its shutdown announcement.

    ``asked``: the boottime of the request for the first two.
    """

    def __init__(self, cluster: FailoverApi, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._unread: ReadFailures | None = None
        """The failed reads of the announcement; kept across rounds."""
        self.drop()

    def drop(self) -> None:
        """Drops all reads, so that the next one is live."""
        self._node: LiveNode | None = None
        self.asked = NEVER
        self._known: tuple[float, float | None] = (NEVER, None)
        self._shutdown: NodeShutdown | None = None
        self._shutdown_asked = NEVER

    async def read_live(self, seen: NodeObservations) -> LiveNode:
        """Reads both live and records them in ``seen``. NotFound if the Node does not exist."""
        asked, known = self._clock.boottime(), seen.known_revisions
        node, lease = await asyncio.gather(self._cluster.read_node(seen.name), self._cluster.read_node_lease(seen.name))
        now = self._clock.boottime()
        seen.observe_node(node, now, since=known[0])
        if lease:
            seen.observe_lease(lease, now, since=known[1])
        self._node, self.asked, self._known = node, asked, (seen.observed, seen.heard)
        return node

    def note_write(self, node: LiveNode) -> None:
        """Takes over the Node from the answer to our own write.

        The read does not become younger, because the Lease was not read.
        """
        if self._node is not None:
            self._node = node

    def reusable_node(self, seen: NodeObservations) -> LiveNode | None:
        """The Node, if it is recent enough and neither a newer state nor a sign of life was seen since; else None."""
        node, same = self._node, self._known == (seen.observed, seen.heard)
        old = self._clock.boottime() >= self.asked + LASTS
        return None if node is None or old or not same or seen.has_newer_than(node) else node

    def is_recent(self, now: float) -> bool:
        """Whether the Node, its Lease and its announcement need not be read at ``now``, unless something was seen since."""
        return self._node is not None and now < min(self.asked, self._shutdown_asked) + LASTS

    async def read_shutdown(self, name: str, observing: ClusterView) -> NodeShutdown | None:
        """A node's shutdown announcement, equally recent; recorded in ``observing``. None without one.

        It is read even if no watch has delivered one: a broken watch delivers nothing, and the announcement holds back
        fencing.
        """
        asked, known = self._clock.boottime(), observing.shutdown_of(name)
        if asked >= self._shutdown_asked + LASTS:
            self._shutdown = await self._read_shutdown_object(name)
            self._shutdown_asked = asked
            if self._shutdown:
                observing.observe_shutdown(name, self._shutdown, self._clock.boottime(), since=known)
        return self._shutdown

    async def _read_shutdown_object(self, name: str) -> NodeShutdown | None:
        """Reads it live; None also if reads have failed for so long that they are suspended."""
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
    """Whether the decision after ``step``, which was executed, may use the read before it.

    It may after writes to the node's objects, which change neither its boot nor its Lease. After a call to a fence, and
    after a wait, the node is read again.
    """
    return isinstance(step, steps.Mark | steps.TaintNode | steps.Delete | steps.ForceDelete | steps.Detach)
