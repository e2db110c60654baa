"""Events are written one after the other, beside the work that they tell of; too many at once are dropped."""

import logging
import re
from collections import deque

from lastcall import names
from lastcall.aio import Signal
from lastcall.errors import LastcallError
from lastcall.failover.doing.outside import Cluster
from lastcall.failover.telling import announcing
from lastcall.failover.telling.happenings import Decided, Happening, Rested
from lastcall.model.observed import Told

MOST = 500
"""Events that wait."""
REASONS = 8
"""The most reasons why one node is not fenced that are told: the texts of some errors differ at each attempt."""

log = logging.getLogger(__name__)


class Telling:
    """``hear`` is a listener; ``run`` writes what it has heard."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: deque[Told] = deque()
        self._uids: dict[str, str] = {}
        self._last: dict[str, str] = {}
        self._held: dict[str, set[str]] = {}
        """By node, what was told of why it is not fenced, until the node is well."""
        self._new = Signal()
        self.dropped = 0

    def hear(self, happening: Happening) -> None:
        """Never waits."""
        if isinstance(happening, Decided) and not happening.would and self._last.get(happening.node) == names.E_WOULD:
            del self._last[happening.node]  # the next time is another one
        if isinstance(happening, Rested):
            self._held.pop(happening.node, None)
        for told in announcing.told(happening, self._uids):
            if self._repeats(told, announcing.held_by(happening.step) if isinstance(happening, Decided) else ""):
                continue
            if len(self._waiting) >= MOST:
                self.dropped += 1
                continue
            self._waiting.append(told)
            self._new.set()

    def _repeats(self, told: Told, held_by: str) -> bool:
        """Whether the last event of a Node had the same reason: a step that is tried again, or goes on.

        ``held_by``: what keeps it from being fenced, for an event that tells of that.
        """
        if told.namespace:
            return False
        if told.reason == names.E_NOT_FENCED:
            return self._is_known(told, held_by)
        before = self._last.get(told.name)
        self._last[told.name] = told.reason
        return before == told.reason

    def _is_known(self, told: Told, held_by: str) -> bool:
        """Whether it was told already why the node is not fenced, since it was well last.

        Several fencers fail in turns, with another text each: each text is told once, and so is each limit. Numbers, such as
        of attempts, make no other text.
        """
        known = self._held.setdefault(told.name, set())
        what = re.sub("[0-9]+", "", told.message) if held_by == announcing.FENCERS else held_by
        if what in known or len(known) >= REASONS:
            return True
        known.add(what)
        return False

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
