"""Periodic loops, as seen by decisions."""

from dataclasses import dataclass

_TOLERANCE = 1e-6
"""Seconds of tolerance: a check that rounding makes slightly early is on time."""


@dataclass
class PeriodicTicks:
    """A tick every ``period`` seconds, starting at the first call."""

    period: float
    _start: float | None = None

    def tick_number(self, now: float) -> int:
        """The number of ticks so far; 0 in the first period."""
        if self._start is None:
            self._start = now
        return int((now - self._start + _TOLERANCE) // self.period)

    def tick_time(self, number: int) -> float:
        """The time of the tick with that number; call ``tick_number`` first."""
        assert self._start is not None
        return self._start + number * self.period

    def first_tick(self, after: float) -> float:
        """The time of the first tick at or after ``after``."""
        number = self.tick_number(after)
        return self.tick_time(number if self.tick_time(number) >= after - _TOLERANCE else number + 1)

    def seconds_until_next(self, now: float, *, after: float = 0.0) -> float:
        """Seconds until the next moment that is ``after`` seconds past a tick; always positive."""
        self.tick_number(now)
        assert self._start is not None
        beats = (now - self._start - after + _TOLERANCE) // self.period + 1
        return self._start + beats * self.period + after - now
