"""Limits the repetition of events about a Node (pure).

A failing device is tried twice a minute for as long as its node is lost. As in Kubernetes' event correlator
(``client-go``, ``tools/record``), a repeated event is written rarely, with a count, and events with ever different
texts are combined.
"""

import re
from dataclasses import dataclass, replace

from lastcall import names
from lastcall.model.observed import ClusterEvent

FIRST, LONGEST = 300.0, 3600.0
"""Seconds before an event is written a second time, and the longest pause; each pause is twice the one before.

The API server keeps events for an hour.
"""
_NUMBERS = re.compile(r"(?:[0-9]+(?:h|ms|m|s))+|[0-9]+")
"""Durations as ``lastcall`` writes them, and other numbers."""
TEXTS = 8
"""The most texts of one reason with a series of their own: some errors have another text at each attempt."""


@dataclass
class _EventSeries:
    """One event and its repetitions."""

    first: float
    due: float
    pause: float = FIRST
    count: int = 1


class EventRepeats:
    """The events about one Node since it was last healthy."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], _EventSeries] = {}
        self._last: tuple[str, str] | None = None

    def due_event(self, told: ClusterEvent, now: float, *, limit: str = "") -> ClusterEvent | None:
        """The event to write, with its count; None if it is not due.

        ``limit``: the limit that it reports, whatever its text. Durations and numbers, such as of attempts, make no
        difference, and neither does the evidence in the event of a policy in mode Observe. An event that continues
        without another one in between has occurred once, and once more each time that it is written.
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
        """The key of its series: reason and text, or the reason alone if there are too many texts."""
        reason, _ = what
        if what in self._series or sum(one == reason for one, _ in self._series) < TEXTS:
            return what
        return (reason, "")
