"""Gives nodes back to external load balancers when they are uncordoned after a drain: work of the controller that leads."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lastcall.drain.decisions.node_patches import leftover_patch
from lastcall.errors import ApiNotPermitted, Conflict, LastcallError, NotFound
from lastcall.model.observed import WatchedNode
from lastcall.ports.drain import DrainCluster
from lastcall.ports.node import Clock

LOOK_SECONDS = 5.0
"""Between two looks at the Nodes, which are in memory."""
NOT_PERMITTED_SECONDS = 300.0
"""Until a Node is tried again that may not be patched: a right is rarely granted within seconds, and each try warns."""

log = logging.getLogger(__name__)


class BalancerMarkRemover:
    """``nodes`` are all Nodes, as last heard of. Any later leader can go on: only refusals are remembered."""

    def __init__(self, cluster: DrainCluster, nodes: Callable[[], Iterable[WatchedNode]], clock: Clock) -> None:
        self._cluster, self._nodes, self._clock = cluster, nodes, clock
        self._refused: dict[str, float] = {}
        """Until when a Node is not tried again, by name."""

    async def run(self) -> None:
        """Runs until cancelled; once more in the next term."""
        while True:
            for node in list(self._nodes()):
                name = node.metadata.name
                if (patch := leftover_patch(node)) is None:
                    self._refused.pop(name, None)
                elif self._refused.get(name, 0.0) <= self._clock.boottime():
                    await self._remove(name, patch)
            await self._clock.sleep(LOOK_SECONDS)

    async def _remove(self, name: str, patch: Mapping[str, Any]) -> None:
        """A node that was changed meanwhile is looked at again in the next round."""
        try:
            await self._cluster.patch_node(name, patch)
        except (Conflict, NotFound):
            return
        except LastcallError as error:
            if isinstance(error, ApiNotPermitted):
                self._refused[name] = self._clock.boottime() + NOT_PERMITTED_SECONDS
            log.warning("node %s is uncordoned, and external load balancers still leave it out: %s", name, error)
        else:
            log.info("node %s is uncordoned: external load balancers get it back", name)
