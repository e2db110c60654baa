"""Events are written one after the other, beside the work that they tell of; too many at once are dropped."""

import logging
from collections import deque

from lastcall.aio import Signal
from lastcall.errors import LastcallError
from lastcall.failover.controller.controller_ports import FailoverApi
from lastcall.failover.reporting import event_texts
from lastcall.failover.reporting.controller_events import Happening, LeadershipEnded, NodeSettled
from lastcall.failover.reporting.event_series import EventRepeats
from lastcall.model.observed import ClusterEvent
from lastcall.ports.node import Clock

MOST = 500
"""Events that wait."""

log = logging.getLogger(__name__)


class EventWriter:
    """``handle_event`` is a listener; ``run`` writes what it has heard."""

    def __init__(self, cluster: FailoverApi, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._waiting: deque[ClusterEvent] = deque()
        self._uids: dict[str, str] = {}
        self._repeats: dict[str, EventRepeats] = {}
        """By node, until it is well or another controller leads."""
        self._new = Signal()
        self.dropped = 0

    def handle_event(self, happening: Happening) -> None:
        """Never waits."""
        self._forget(happening)
        for told in event_texts.events_for(happening, self._uids):
            due = self._due_event(told, happening)
            if due is None:
                continue
            if len(self._waiting) >= MOST:
                self.dropped += 1
                continue
            self._waiting.append(due)
            self._new.set()

    def _forget(self, happening: Happening) -> None:
        match happening:
            case NodeSettled(node=node):
                self._repeats.pop(node, None)
                self._uids.pop(node, None)
            case LeadershipEnded():  # who leads next tells that nodes are well, and of their troubles
                self._repeats.clear()
                self._uids.clear()

    def _due_event(self, told: ClusterEvent, happening: Happening) -> ClusterEvent | None:
        """None for an event of a Node that is not to be told again now."""
        if told.namespace:
            return told
        limit = event_texts.holding_limit(happening)
        repeats = self._repeats.setdefault(told.name, EventRepeats())
        return repeats.due_event(told, self._clock.boottime(), limit="" if limit == event_texts.FENCERS else limit)

    async def run(self) -> None:
        """Never ends. An event that cannot be written is told in the log."""
        while True:
            while not self._waiting:
                await self._new.next()
            told = self._waiting.popleft()
            try:
                await self._cluster.create_event(told)
            except LastcallError as error:
                log.warning("the event %s (%s) is lost: %s", told.reason, told.message, error)
