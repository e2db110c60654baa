"""The work queue of one controller: the keys to reconcile, and when (pure)."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lastcall_lab.controllers.framework.actions import Action
from lastcall_lab.controllers.framework.controller import Controller
from lastcall_lab.controllers.framework.view import ObjectRef

RETRY_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds after a failed decision, or one without effect; the last delay repeats."""
_OWN_PAUSES: Mapping[str, Sequence[float]] = {"job": (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)}
"""The same for controllers with their own backoff (``job_controller.go: DefaultJobApiBackOff``)."""


class _PastDecision(NamedTuple):
    """The result of a decision: the revisions of its writes, and how often it was the same before."""

    actions: Sequence[Action]
    revisions: Mapping[str, int]
    again: int


@dataclass
class WorkQueue:
    """Keys with their due times."""

    controller: Controller
    blocked: dict[ObjectRef, dict[str, int]] = field(default_factory=dict)
    """Blocked keys: the revision of each resource that the view must reach first."""
    said: str = ""
    """The sentence last logged."""
    _due: list[tuple[float, int, ObjectRef]] = field(default_factory=list)
    _earliest: dict[ObjectRef, float] = field(default_factory=dict)
    _number: int = 0
    _failures: dict[ObjectRef, int] = field(default_factory=dict)
    _done: dict[ObjectRef, _PastDecision] = field(default_factory=dict)

    def add(self, key: ObjectRef, at: float) -> None:
        """Queues a key for that time, or keeps an earlier one."""
        if self._earliest.get(key, float("inf")) > at:
            self._earliest[key] = at
            self._number += 1
            heapq.heappush(self._due, (at, self._number, key))

    def next_at(self) -> float:
        """When the next key is due."""
        return self._due[0][0] if self._due else float("inf")

    def take(self, now: float) -> ObjectRef | None:
        """A due key; None if there is none."""
        while self._due and self._due[0][0] <= now:
            at, _, key = heapq.heappop(self._due)
            if self._earliest.get(key) == at:
                del self._earliest[key]
                return key
        return None

    def retry_later(self, key: ObjectRef, now: float) -> None:
        """Queues the key again after a failed decision, with a growing delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add(key, now + _retry_pause(failures, _OWN_PAUSES.get(self.controller.name, RETRY_SECONDS)))

    def record_success(self, key: ObjectRef, actions: Sequence[Action], now: float) -> int:
        """Records success; returns how often the same decision came before without any effect.

        The view can show nothing new after a repeated decision, so the key is not blocked; it is queued again with a
        growing delay.
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
        """Stops waiting for writes to a resource that is no longer followed."""
        for revisions in self.blocked.values():
            revisions.pop(resource, None)


def _retry_pause(times: int, pauses: Sequence[float]) -> float:
    return pauses[min(times, len(pauses) - 1)]
