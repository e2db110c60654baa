"""Reads of the API server that many ask for at the same time, remembered for some seconds."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from lastcall.ports.node import Clock

T = TypeVar("T")

_ROOM = 512
"""So many answers are kept at most: objects of namespaces that are no longer asked for are forgotten."""


@dataclass(frozen=True)
class _Answer:
    asked_at: float
    reading: "asyncio.Future[Any]"


class RecentReads:
    """One answer for each key. Who asks while the same is being read waits for that; a failure is not remembered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[str, _Answer] = {}

    async def read(self, key: str, load: Callable[[], Awaitable[T]], *, seconds: float) -> T:
        """The answer, read at most so many seconds ago; 0 reads it now. Errors are those of ``load``.

        A caller that is cancelled does not take the answer away from the others.
        """
        now = self._clock.boottime()
        known = self._answers.get(key)
        if known is None or now - known.asked_at >= seconds or _has_failed(known.reading):
            known = self._answers[key] = _Answer(now, asyncio.ensure_future(load()))
            self._make_room()
        found: T = await asyncio.shield(known.reading)
        return found

    def _make_room(self) -> None:
        while len(self._answers) > _ROOM:
            oldest = min(self._answers, key=lambda key: self._answers[key].asked_at)
            del self._answers[oldest]


def _has_failed(reading: "asyncio.Future[Any]") -> bool:
    return reading.done() and (reading.cancelled() or reading.exception() is not None)
