"""Whether the observer's own time is to be trusted (pure): a clock that was set, a process or machine that stood still.

Who has slept cannot know what he has missed, and what he has not heard says nothing.
"""

PERIOD = 1.0
"""Seconds between two looks."""

_STEP = 1.0
"""Seconds by which the wall clock may drift from the monotonic one between two looks (NTP slews far less)."""

_LATE = 5.0
"""Seconds by which a look may be late: more is a process that was stopped, or a machine that was suspended."""


class ClockJumps:
    """Looks at both clocks at each ``PERIOD``."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self.stepped: float | None = None
        """When (boottime) a step was last seen; None: never."""

    def detect_jump(self, boottime: float, wall: float) -> bool:
        """Whether time has jumped since the look before."""
        before, self._last = self._last, (boottime, wall)
        if before is None:
            return False
        passed = boottime - before[0]
        jumped = passed > PERIOD + _LATE or abs((wall - before[1]) - passed) > _STEP
        if jumped:
            self.stepped = boottime
        return jumped
