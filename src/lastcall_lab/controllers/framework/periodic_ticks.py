"""Loops that look at something every few seconds, as decisions see them."""

from dataclasses import dataclass

_TOLERANCE = 1e-6
"""Seconds: a look that comes by a rounding error too early is not too early."""


@dataclass
class PeriodicTicks:
    """A beat of ``period`` seconds, which begins when it is first asked for."""

    period: float
    _start: float | None = None

    def tick_number(self, now: float) -> int:
        """How many beats have passed; 0 in the first period."""
        if self._start is None:
            self._start = now
        return int((now - self._start + _TOLERANCE) // self.period)

    def tick_time(self, number: int) -> float:
        """When the beat with that number is; ``tick_number`` must have been asked before."""
        assert self._start is not None
        return self._start + number * self.period

    def first_tick(self, after: float) -> float:
        """When the first beat is that comes at ``after`` or later."""
        number = self.tick_number(after)
        return self.tick_time(number if self.tick_time(number) >= after - _TOLERANCE else number + 1)

    def seconds_until_next(self, now: float, *, after: float = 0.0) -> float:
        """Seconds until the next beat, or until ``after`` seconds later; more than 0."""
        self.tick_number(now)
        assert self._start is not None
        beats = (now - self._start - after + _TOLERANCE) // self.period + 1
        return self._start + beats * self.period + after - now
