"""Tells in the status of each FencePolicy whether it is heeded, and for how many nodes it is the one that holds."""

import logging
from collections import Counter
from datetime import UTC, datetime

from lastcall.aio import Signal, first
from lastcall.errors import LastcallError
from lastcall.failover.doing.observing import Observing
from lastcall.failover.doing.outside import Cluster
from lastcall.failover.limits import policies
from lastcall.ports import Clock

LOOK = 60.0
"""Seconds between two looks: how many nodes there are changes by itself."""
CALM = 0.5
"""Seconds in which several changes are told as one."""

log = logging.getLogger(__name__)


class Heeding:
    """``run`` while this controller leads; ``changed`` is set when a policy is another."""

    def __init__(self, cluster: Cluster, observing: Observing, clock: Clock) -> None:
        self._cluster = cluster
        self._observing = observing
        self._clock = clock
        self.changed = Signal()

    async def run(self) -> None:
        """Never ends. What cannot be written is tried again at the next look."""
        while True:
            changed = self.changed.next()
            await self._tell()
            await first(changed, self._clock.sleep(LOOK))
            await self._clock.sleep(CALM)

    async def _tell(self) -> None:
        chosen = Counter(knot.choice.name for knot in self._observing.knots.values())
        now = datetime.fromtimestamp(self._clock.wall(), UTC)
        found = self._observing.policies
        for entry in policies.entries(found.values()):
            wanted = policies.status(found[entry.name], entry, nodes=chosen[entry.name], now=now)
            if wanted is None:
                continue
            try:
                await self._cluster.tell_policy(entry.name, wanted)
            except LastcallError as error:
                log.warning("the status of FencePolicy %s is not written: %s", entry.name, error)
