"""Writes events one after the other, after the work that they report; drops events if too many are queued."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace

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
LATEST = 5.0
"""Seconds for which an event waits at most while pods and volumes are removed, which an event would delay."""
_LOOK = 0.1
"""Seconds between two questions whether that is over."""

log = logging.getLogger(__name__)


class EventWriter:
    """The event recorder: ``handle_event`` is a listener, ``run`` writes the queued events.

    ``busy``: whether pods or volumes are being removed. Events then wait for ``LATEST`` seconds at most.
    """

    def __init__(self, cluster: FailoverApi, clock: Clock, busy: Callable[[], bool] = lambda: False) -> None:
        self._cluster = cluster
        self._clock = clock
        self._busy = busy
        self._waiting: deque[tuple[float, ClusterEvent]] = deque()
        """With the boottime at which each was queued."""
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
            self._waiting.append((self._clock.boottime(), due))
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
            while self._busy() and not self._is_overdue():
                await self._clock.sleep(_LOOK)
            since, told = self._waiting.popleft()
            try:
                await self._cluster.create_event(replace(told, age=self._clock.boottime() - since))
            except LastcallError as error:
                log.warning("event %s (%s) is lost: %s", told.reason, told.message, error)

    def _is_overdue(self) -> bool:
        """Whether the next event has waited for long, or so many wait that some may be dropped soon."""
        return self._clock.boottime() >= self._waiting[0][0] + LATEST or len(self._waiting) > MOST / 2
