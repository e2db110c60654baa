"""Times of a periodic loop that skips some of its ticks (pure)."""

from math import ceil

_ROUNDING = 1e-9


def next_tick(began: float, period: float, after: float) -> float:
    """The first time at or after ``after`` that is a whole number of periods after ``began``."""
    return began + ceil((after - began) / period - _ROUNDING) * period
