"""Made sure of, live, before what cannot be undone: that we lead, that the mark is ours, and that the boot is the same."""

import asyncio

from lastcall.errors import RefusedForSafety
from lastcall.failover import owner
from lastcall.failover.outside import Cluster, Leadership
from lastcall.failover.owner import OwnerMark
from lastcall.model.observed import LiveNode
from lastcall.ports import Clock

HOLDS = 1.0
"""Seconds for which what was made sure of holds for the next call of the same step: pods go by the hundred."""


class Surety:
    """For one step about one boot of one node. ``alive_refuses``: nothing is done either if the node is Ready."""

    def __init__(
        self, cluster: Cluster, leadership: Leadership, clock: Clock, *, me: str, node: str, boot_id: str
    ) -> None:
        self._cluster = cluster
        self._leadership = leadership
        self._clock = clock
        self._me = me
        self._node = node
        self._boot_id = boot_id
        self._at = float("-inf")
        self._lock = asyncio.Lock()

    async def check(self, *, ready_refuses: bool = True) -> None:
        """RefusedForSafety if it is not so any more; the API's error if that cannot be known."""
        if self._fresh():
            return
        async with self._lock:
            if not self._fresh():
                await self.look(ready_refuses=ready_refuses)

    async def look(self, *, ready_refuses: bool = True) -> LiveNode:
        """The same, always read anew; the Node as it is."""
        began = self._clock.boottime()
        if not await self._leadership.confirm():
            raise RefusedForSafety(f"{self._me} does not lead any more")
        node = await self._cluster.node(self._node)
        if node.status.node_info.boot_id != self._boot_id:
            raise RefusedForSafety(f"node {self._node} has another boot id by now: {node.status.node_info.boot_id}")
        if ready_refuses and node.ready.status == "True":
            raise RefusedForSafety(f"node {self._node} is Ready by now")
        mark = owner.read(node.mark)
        if mark is not None and not (isinstance(mark, OwnerMark) and mark.by == self._me):
            raise RefusedForSafety(f"the mark on node {self._node} is not {self._me}'s any more")
        self._at = began
        return node

    def _fresh(self) -> bool:
        return self._clock.boottime() < self._at + HOLDS and self._leadership.leads
