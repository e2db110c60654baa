"""When the runtime can take the next request to stop a container (no I/O).

To send SIGTERM, the runtime starts a program (runc), which is CPU work. Requests that come at once share the cores: then
all signals are late, the first one too. One after the other, the first come sooner in most measurements, and the last no
sooner (docs/performance.md).
"""

from typing import Final

from lastcall.ports.node import Clock

STOP_CPU_SECONDS: Final = 0.004
"""Seconds of one core between two requests: a part of what runc needs, so that no core is ever idle for it."""

LONGEST_SECONDS: Final = 0.25
"""The longest wait in seconds: with hundreds of containers the runtime has enough to do."""


class StopTurns:
    """``cores``: how many the machine has."""

    def __init__(self, clock: Clock, cores: int) -> None:
        self._clock = clock
        self._interval = STOP_CPU_SECONDS / cores
        self._next = 0.0

    def reserve_turn(self) -> float:
        """Takes the next turn; returns the seconds until it comes."""
        now = self._clock.boottime()
        turn = min(max(now, self._next), now + LONGEST_SECONDS)
        self._next = turn + self._interval
        return turn - now
