"""What one controller has yet to look at, and when: the runner keeps one for each (pure)."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lastcall_lab.controllers.framework.actions import Action
from lastcall_lab.controllers.framework.controller import Controller
from lastcall_lab.controllers.framework.view import ObjectRef

RETRY_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""After a decision that could not be carried out, or that has changed nothing; the last one for ever."""
_OWN_PAUSES: Mapping[str, Sequence[float]] = {"job": (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)}
"""The same of controllers that have their own (``job_controller.go: DefaultJobApiBackOff``)."""


class _PastDecision(NamedTuple):
    """What has come of a decision: the revisions of what it wrote, and how often it has been the same before."""

    actions: Sequence[Action]
    revisions: Mapping[str, int]
    again: int


@dataclass
class WorkQueue:
    """Keys with the times at which they are due."""

    controller: Controller
    blocked: dict[ObjectRef, dict[str, int]] = field(default_factory=dict)
    """Keys whose writes the view does not show yet: the revision of each resource that it must have reached."""
    said: str = ""
    """What was last said for people."""
    _due: list[tuple[float, int, ObjectRef]] = field(default_factory=list)
    _earliest: dict[ObjectRef, float] = field(default_factory=dict)
    _number: int = 0
    _failures: dict[ObjectRef, int] = field(default_factory=dict)
    _done: dict[ObjectRef, _PastDecision] = field(default_factory=dict)

    def add(self, key: ObjectRef, at: float) -> None:
        """To be looked at then, or sooner if that was planned already."""
        if self._earliest.get(key, float("inf")) > at:
            self._earliest[key] = at
            self._number += 1
            heapq.heappush(self._due, (at, self._number, key))

    def next_at(self) -> float:
        """When there is something to do."""
        return self._due[0][0] if self._due else float("inf")

    def take(self, now: float) -> ObjectRef | None:
        """What is due; None if nothing is."""
        while self._due and self._due[0][0] <= now:
            at, _, key = heapq.heappop(self._due)
            if self._earliest.get(key) == at:
                del self._earliest[key]
                return key
        return None

    def retry_later(self, key: ObjectRef, now: float) -> None:
        """A decision could not be carried out: the key is due again, later each time."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add(key, now + _retry_pause(failures, _OWN_PAUSES.get(self.controller.name, RETRY_SECONDS)))

    def record_success(self, key: ObjectRef, actions: Sequence[Action], now: float) -> int:
        """It was carried out: how often it had been the same before, with nothing changed by it.

        If it had, the view can show nothing new, so that the key is not blocked; it is due later each time.
        """
        self._failures.pop(key, None)
        revisions, before = self.blocked.get(key), self._done.pop(key, None)
        if not revisions:
            return 0
        same = before is not None and (before.revisions, before.actions) == (revisions, actions)
        again = before.again + 1 if before and same else 0
        self._done[key] = _PastDecision(actions, revisions, again)
        if again:
            del self.blocked[key]
            self.add(key, now + _retry_pause(again - 1, RETRY_SECONDS))
        return again

    def forget(self, resource: str) -> None:
        """A resource is not followed any more: nobody waits for what was written to it."""
        for revisions in self.blocked.values():
            revisions.pop(resource, None)


def _retry_pause(times: int, pauses: Sequence[float]) -> float:
    return pauses[min(times, len(pauses) - 1)]
