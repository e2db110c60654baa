"""Events are written one after the other, beside the work that they tell of; too many at once are dropped."""

import logging
import re
from collections import deque

from lastcall import names
from lastcall.aio import Signal
from lastcall.errors import LastcallError
from lastcall.failover.doing.outside import Cluster
from lastcall.failover.telling import announcing
from lastcall.failover.telling.happenings import Decided, Happening
from lastcall.model.observed import Told

MOST = 500
"""Events that wait."""

log = logging.getLogger(__name__)


class Telling:
    """``hear`` is a listener; ``run`` writes what it has heard."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: deque[Told] = deque()
        self._uids: dict[str, str] = {}
        self._last: dict[str, str] = {}
        self._new = Signal()
        self.dropped = 0

    def hear(self, happening: Happening) -> None:
        """Never waits."""
        if isinstance(happening, Decided) and not happening.would and self._last.get(happening.node) == names.E_WOULD:
            del self._last[happening.node]  # the next time is another one
        for told in announcing.told(happening, self._uids):
            if self._repeats(told):
                continue
            if len(self._waiting) >= MOST:
                self.dropped += 1
                continue
            self._waiting.append(told)
            self._new.set()

    def _repeats(self, told: Told) -> bool:
        """Whether the last event of a Node had the same reason: a step that is tried again, or goes on.

        Why it is not fenced is told again if that has changed by more than numbers, such as of attempts.
        """
        if told.namespace:
            return False
        before = self._last.get(told.name)
        new = told.reason
        if new == names.E_NOT_FENCED:
            new += re.sub("[0-9]+", "", told.message)
        self._last[told.name] = new
        return before == new

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
