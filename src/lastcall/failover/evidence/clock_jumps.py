"""Detects that the observer's clock is unreliable (pure): a clock step, or a suspended process or machine.

After this process was suspended, or the clock stepped, silence is no evidence; observation starts over.
"""

PERIOD = 1.0
"""Seconds between two checks."""

_STEP = 1.0
"""Seconds by which the wall clock may drift from the monotonic one between two checks (NTP slews far less)."""

_LATE = 5.0
"""Seconds by which a check may be late; a longer delay means a stopped process or a suspended machine."""


class ClockJumps:
    """Compares both clocks every ``PERIOD``."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self.stepped: float | None = None
        """The boottime of the last detected jump; None: none so far."""

    def detect_jump(self, boottime: float, wall: float) -> bool:
        """Whether time has jumped since the previous check."""
        before, self._last = self._last, (boottime, wall)
        if before is None:
            return False
        passed = boottime - before[0]
        jumped = passed > PERIOD + _LATE or abs((wall - before[1]) - passed) > _STEP
        if jumped:
            self.stepped = boottime
        return jumped
