"""Events are written one after the other, beside the work that they tell of; too many at once are dropped."""

import logging
from collections import deque

from lastcall.aio import Signal
from lastcall.errors import LastcallError
from lastcall.failover.doing.outside import Cluster
from lastcall.failover.telling import announcing
from lastcall.failover.telling.happenings import Happening, Rested, Stopped
from lastcall.failover.telling.repeats import Repeats
from lastcall.model.observed import Told
from lastcall.ports import Clock

MOST = 500
"""Events that wait."""

log = logging.getLogger(__name__)


class Telling:
    """``hear`` is a listener; ``run`` writes what it has heard."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._waiting: deque[Told] = deque()
        self._uids: dict[str, str] = {}
        self._repeats: dict[str, Repeats] = {}
        """By node, until it is well or another controller leads."""
        self._new = Signal()
        self.dropped = 0

    def hear(self, happening: Happening) -> None:
        """Never waits."""
        self._forget(happening)
        for told in announcing.told(happening, self._uids):
            due = self._due(told, happening)
            if due is None:
                continue
            if len(self._waiting) >= MOST:
                self.dropped += 1
                continue
            self._waiting.append(due)
            self._new.set()

    def _forget(self, happening: Happening) -> None:
        match happening:
            case Rested(node=node):
                self._repeats.pop(node, None)
                self._uids.pop(node, None)
            case Stopped():  # who leads next tells that nodes are well, and of their troubles
                self._repeats.clear()
                self._uids.clear()

    def _due(self, told: Told, happening: Happening) -> Told | None:
        """None for an event of a Node that is not to be told again now."""
        if told.namespace:
            return told
        limit = announcing.held_by(happening)
        repeats = self._repeats.setdefault(told.name, Repeats())
        return repeats.due(told, self._clock.boottime(), limit="" if limit == announcing.FENCERS else limit)

    async def run(self) -> None:
        """Never ends. An event that cannot be written is told in the log."""
        while True:
            while not self._waiting:
                await self._new.next()
            told = self._waiting.popleft()
            try:
                await self._cluster.tell(told)
            except LastcallError as error:
                log.warning("the event %s (%s) is lost: %s", told.reason, told.message, error)
