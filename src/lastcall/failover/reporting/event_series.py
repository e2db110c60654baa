"""Which events about a Node are told again, and when (pure).

A device that refuses is tried twice a minute for as long as its node is lost. As in Kubernetes' event correlator
(``client-go``, ``tools/record``) an event that repeats is told rarely, with a count, and texts that all differ are combined.
"""

import re
from dataclasses import dataclass, replace

from lastcall import names
from lastcall.model.observed import ClusterEvent

FIRST, LONGEST = 300.0, 3600.0
"""Seconds after which an event is told a second time, and at most after each further time; each pause is twice the one before.

The API server keeps events for an hour.
"""
_NUMBERS = re.compile(r"(?:[0-9]+(?:h|ms|m|s))+|[0-9]+")
"""Durations as ``lastcall`` writes them, and other numbers."""
TEXTS = 8
"""The most texts of one reason that are told each for itself: those of some errors differ at each attempt."""


@dataclass
class _EventSeries:
    """One event and its repetitions."""

    first: float
    due: float
    pause: float = FIRST
    count: int = 1


class EventRepeats:
    """The events about one Node since it was well last."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], _EventSeries] = {}
        self._last: tuple[str, str] | None = None

    def due_event(self, told: ClusterEvent, now: float, *, limit: str = "") -> ClusterEvent | None:
        """The event as it is to be written, with how often it has occurred; None if it is not to be written now.

        ``limit``: the limit that it tells of, whatever its text says. Durations and numbers, such as of attempts, make no other
        text, nor does the evidence of what a policy that observes would do. What goes on without another event in between has
        occurred once, and once more each time that it is written again.
        """
        text = "" if told.reason == names.E_WOULD else limit or _NUMBERS.sub("", told.message)
        what = (told.reason, text)
        goes_on, self._last = what == self._last, what
        key = self._series_key(what)
        one = self._series.get(key)
        if one is None:
            self._series[key] = _EventSeries(first=now, due=now + FIRST)
            return told
        if now < one.due:
            one.count += not goes_on
            return None
        one.count += 1
        one.pause = min(LONGEST, 2 * one.pause)
        one.due = now + one.pause
        return replace(told, count=one.count, lasts=now - one.first)

    def _series_key(self, what: tuple[str, str]) -> tuple[str, str]:
        """Of its series: what it is, or the reason alone if there are too many texts."""
        reason, _ = what
        if what in self._series or sum(one == reason for one, _ in self._series) < TEXTS:
            return what
        return (reason, "")
