"""Real time; the only place that reads a clock."""

import asyncio
import time


class SystemClock:
    """``ports.node.Clock`` on CLOCK_BOOTTIME and the event loop's timers."""

    def boottime(self) -> float:
        """Seconds since boot, suspend included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall(self) -> float:
        """Seconds since 1970 UTC."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Waits; zero or less only yields to other tasks."""
        await asyncio.sleep(max(0.0, seconds))


def monotonic_usec() -> int:
    """CLOCK_MONOTONIC in microseconds, which systemd requires with RELOADING=1."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
