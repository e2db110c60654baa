"""The Nodes of a drain: as watched, and read from the API server while the watch may be out of date."""

import asyncio
import logging
from collections.abc import Iterable, Mapping

from lastcall.aio import timeout
from lastcall.errors import LastcallError, NotFound
from lastcall.model.drain_facts import DrainNode
from lastcall.ports.drain import DrainCluster, DrainWatch

log = logging.getLogger(__name__)

_LONGEST = 2.0
"""Seconds for the Nodes that are read: what else the drain decides must not wait longer."""


class NodeSight:
    """Before each decision the drain must know whether somebody has uncordoned, deleted or replaced a Node."""

    def __init__(self, cluster: DrainCluster, watch: DrainWatch) -> None:
        self._cluster, self._watch = cluster, watch
        self._is_blind = False

    async def look(self, names: Iterable[str]) -> Mapping[str, DrainNode] | None:
        """Those of the Nodes that exist, by name; None if that cannot be found out now.

        Costs no request while the watch is current.
        """
        failure = self._watch.nodes_failure
        if not failure:
            self._is_blind = False
            return self._watch.nodes
        try:
            async with timeout(_LONGEST):
                found = await asyncio.gather(*(self._read(name) for name in names))
        except (LastcallError, TimeoutError) as error:
            why = str(error) or f"no answer in {_LONGEST:g} s"
            self._warn_once(f"no pod is evicted while the nodes can be neither watched ({failure}) nor read ({why})")
            return None
        self._is_blind = False
        return {node.name: node for node in found if node is not None}

    def _warn_once(self, text: str) -> None:
        if not self._is_blind:
            log.warning("%s", text)
        self._is_blind = True

    async def _read(self, name: str) -> DrainNode | None:
        try:
            return await self._cluster.read_node(name)
        except NotFound:
            return None
