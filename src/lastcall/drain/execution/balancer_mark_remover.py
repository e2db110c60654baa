"""Gives nodes back to external load balancers when they are uncordoned after a drain: work of the controller that leads."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lastcall.drain.decisions.node_patches import leftover_patch
from lastcall.errors import Conflict, LastcallError, NotFound
from lastcall.model.observed import WatchedNode
from lastcall.ports.drain import DrainCluster
from lastcall.ports.node import Clock

LOOK_SECONDS = 5.0
"""Between two looks at the Nodes, which are in memory."""

log = logging.getLogger(__name__)


class BalancerMarkRemover:
    """``nodes`` are all Nodes, as last heard of. Nothing else is remembered, so that any later leader can go on."""

    def __init__(self, cluster: DrainCluster, nodes: Callable[[], Iterable[WatchedNode]], clock: Clock) -> None:
        self._cluster, self._nodes, self._clock = cluster, nodes, clock

    async def run(self) -> None:
        """Runs until cancelled; once more in the next term."""
        while True:
            for node in list(self._nodes()):
                if (patch := leftover_patch(node)) is not None:
                    await self._remove(node.metadata.name, patch)
            await self._clock.sleep(LOOK_SECONDS)

    async def _remove(self, name: str, patch: Mapping[str, Any]) -> None:
        """A node that was changed meanwhile is looked at again in the next round."""
        try:
            await self._cluster.patch_node(name, patch)
        except (Conflict, NotFound):
            return
        except LastcallError as error:
            log.warning("node %s is uncordoned, and external load balancers still leave it out: %s", name, error)
        else:
            log.info("node %s is uncordoned: external load balancers get it back", name)
