"""Reads of the API server that many ask for at the same time, remembered for some seconds."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from lastcall.ports.node import Clock

T = TypeVar("T")

_ROOM = 512
"""So many answers are kept at most: objects of namespaces that are no longer asked for are forgotten."""


_RENEWED = 0.75
"""The part of an answer's time after which it is read again, while it counts still: so nobody waits for an answer."""


@dataclass(frozen=True)
class _Answer:
    asked_at: float
    reading: "asyncio.Future[Any]"

    def counts(self, now: float, seconds: float) -> bool:
        """Whether it is younger than that, or not there yet; a failure counts for nobody."""
        return now - self.asked_at < seconds and not _has_failed(self.reading)


class RecentReads:
    """One answer for each key. Who asks while the same is being read waits for that; a failure is not remembered.

    What is asked for near the end of its time is read again in the background.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[str, _Answer] = {}
        self._renewals: dict[str, _Answer] = {}

    async def read(self, key: str, load: Callable[[], Awaitable[T]], *, seconds: float) -> T:
        """The answer, read at most so many seconds ago; 0 reads it now. Errors are those of ``load``.

        A caller that is cancelled does not take the answer away from the others.
        """
        now = self._clock.boottime()
        known = self._answers.get(key)
        if known is None or not known.counts(now, seconds):
            known = self._answers[key] = self._renewal(key, now, seconds) or _Answer(now, _start(load))
            self._make_room()
        else:
            self._renew_old(key, known, load, now, seconds)
        found: T = await asyncio.shield(known.reading)
        return found

    def recall(self, key: str, load: Callable[[], Awaitable[T]], *, seconds: float) -> "asyncio.Future[T] | None":
        """The same if nothing has to be waited for: what holds the answer. None if there is no answer of that age."""
        now = self._clock.boottime()
        known = self._answers.get(key)
        if known is None or not known.reading.done() or not known.counts(now, seconds):
            return None
        self._renew_old(key, known, load, now, seconds)
        return known.reading

    def forget(self, key: str) -> None:
        """Nothing that was asked before counts for those who ask from now on."""
        self._answers.pop(key, None)
        self._renewals.pop(key, None)

    def _renewal(self, key: str, now: float, seconds: float) -> _Answer | None:
        """The answer that is being read in the background, if it counts."""
        found = self._renewals.get(key)
        return found if found and found.counts(now, seconds) else None

    def _renew_old(
        self, key: str, known: _Answer, load: Callable[[], Awaitable[Any]], now: float, seconds: float
    ) -> None:
        """Reads an answer again that is asked for near the end of its time."""
        if now - known.asked_at >= _RENEWED * seconds and known.reading.done() and key not in self._renewals:
            self._renew(key, load, now)

    def _renew(self, key: str, load: Callable[[], Awaitable[Any]], now: float) -> None:
        answer = self._renewals[key] = _Answer(now, _start(load))
        answer.reading.add_done_callback(lambda _: self._finish_renewal(key, answer))

    def _finish_renewal(self, key: str, answer: _Answer) -> None:
        """What has failed, was forgotten or is older than what is known changes nothing."""
        failed = _has_failed(answer.reading)
        if self._renewals.get(key) is not answer:
            return
        del self._renewals[key]
        known = self._answers.get(key)
        if not failed and known and known.asked_at < answer.asked_at:
            self._answers[key] = answer

    def _make_room(self) -> None:
        while len(self._answers) > _ROOM:
            oldest = min(self._answers, key=lambda key: self._answers[key].asked_at)
            del self._answers[oldest]


def _start(load: Callable[[], Awaitable[Any]]) -> "asyncio.Future[Any]":
    reading: asyncio.Future[Any] = asyncio.ensure_future(load())
    reading.add_done_callback(_has_failed)  # an error is nobody's news if all who waited have given up
    return reading


def _has_failed(reading: "asyncio.Future[Any]") -> bool:
    return reading.done() and (reading.cancelled() or reading.exception() is not None)
