"""Writes events one after the other, beside the work that they report; drops events if too many are queued."""

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
"""The most queued events."""

log = logging.getLogger(__name__)


class EventWriter:
    """The event recorder: ``handle_event`` is a listener, ``run`` writes the queued events."""

    def __init__(self, cluster: FailoverApi, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._waiting: deque[ClusterEvent] = deque()
        self._uids: dict[str, str] = {}
        self._repeats: dict[str, EventRepeats] = {}
        """By node, until the node is healthy or another controller leads."""
        self._new = Signal()
        self.dropped = 0

    def handle_event(self, happening: Happening) -> None:
        """Queues the events of a happening. Never waits."""
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
        """The event to write; None for a Node's event that must not be repeated now."""
        if told.namespace:
            return told
        limit = event_texts.holding_limit(happening)
        repeats = self._repeats.setdefault(told.name, EventRepeats())
        return repeats.due_event(told, self._clock.boottime(), limit="" if limit == event_texts.FENCERS else limit)

    async def run(self) -> None:
        """Writes queued events; never ends. An event that cannot be written is logged."""
        while True:
            while not self._waiting:
                await self._new.next()
            told = self._waiting.popleft()
            try:
                await self._cluster.create_event(told)
            except LastcallError as error:
                log.warning("event %s (%s) is lost: %s", told.reason, told.message, error)
