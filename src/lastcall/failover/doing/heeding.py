"""Tells in the status of each FencePolicy whether it is heeded, for how many nodes it holds, and which fencers fail."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from lastcall.aio import Signal, first
from lastcall.errors import LastcallError
from lastcall.failover.deciding.case import Case
from lastcall.failover.doing.observing import Observing
from lastcall.failover.doing.outside import Cluster
from lastcall.failover.limits import policies
from lastcall.failover.telling.fencer_failures import Fencers, by_policy
from lastcall.ports import Clock

LOOK = 60.0
"""Seconds between two looks: how many nodes there are changes by itself."""
PACE = 5.0
"""The same while nodes are in trouble; what is told of their fencers is renewed no more often, whatever else changes."""
CALM = 0.5
"""Seconds in which several changes are told as one."""

log = logging.getLogger(__name__)


class Heeding:
    """``run`` while this controller leads; ``changed`` is set when a policy is another, or a node comes to be in trouble.

    ``cases`` are the nodes in trouble as they were last decided about.
    """

    def __init__(
        self, cluster: Cluster, observing: Observing, clock: Clock, cases: Callable[[], Iterable[Case]]
    ) -> None:
        self._cluster = cluster
        self._observing = observing
        self._clock = clock
        self._cases = cases
        self._fencers: Mapping[str, Fencers] = {}
        self._looked = float("-inf")
        self.changed = Signal()

    async def run(self) -> None:
        """Never ends. What cannot be written is tried again at the next look."""
        while True:
            changed = self.changed.next()
            await self._tell()
            await first(changed, self._clock.sleep(PACE if any(True for _ in self._cases()) else LOOK))
            await self._clock.sleep(CALM)

    async def _tell(self) -> None:
        chosen = Counter(knot.choice.name for knot in self._observing.knots.values())
        boottime, wall = self._clock.boottime(), self._clock.wall()
        if boottime >= self._looked + PACE:
            self._fencers, self._looked = by_policy(self._cases(), boottime, wall), boottime
        now = datetime.fromtimestamp(wall, UTC)
        found = self._observing.policies
        for entry in policies.entries(found.values()):
            fencers = self._fencers.get(entry.name, Fencers())
            wanted = policies.status(
                found[entry.name],
                entry,
                nodes=chosen[entry.name],
                working=fencers.condition,
                fencers=fencers.entries,
                now=now,
            )
            if wanted is None:
                continue
            try:
                await self._cluster.tell_policy(entry.name, wanted)
            except LastcallError as error:
                log.warning("the status of FencePolicy %s is not written: %s", entry.name, error)
