"""The clocks of machines: all advance at the same rate, but wall clocks may be skewed."""

from collections.abc import Callable

from lastcall.ports.node import Clock


class NodeClock:
    """``ports.Clock`` of one machine; ``skew`` is how many seconds its wall clock is ahead, and may be changed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._skew = 0.0
        self.furthest = 0.0
        """The most that it has ever been ahead."""
        self.jumped: Callable[[], None] = lambda: None
        """Hears that ``skew`` has changed."""

    @property
    def skew(self) -> float:
        """0 at first."""
        return self._skew

    @skew.setter
    def skew(self, skew: float) -> None:
        self._skew = skew
        self.furthest = max(self.furthest, skew)
        self.jumped()

    def boottime(self) -> float:
        """As everywhere."""
        return self._clock.boottime()

    def wall(self) -> float:
        """As this machine has it."""
        return self._clock.wall() + self._skew

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await self._clock.sleep(seconds)
