"""The time that one pod may take, which can become shorter while its end is under way."""

from collections.abc import Callable

from lastcall.aio import Signal, first
from lastcall.graceful.termination import Window
from lastcall.ports import Clock


class Allotment:
    """A pod's window and whoever waits for a moment of it."""

    def __init__(self, window: Window, clock: Clock) -> None:
        self.window = window
        """As it is now."""
        self._clock = clock
        self._shortened = Signal()

    def shorten(self, window: Window) -> None:
        """From now on this window holds; whoever waits for a moment of the old one waits for the new one."""
        self.window = window
        self._shortened.set()

    async def cut_short(self, moment: Callable[[Window], float]) -> None:
        """Returns at that moment if the window is shortened while this waits; else it never returns."""
        await self._shortened.next()
        await self.until(moment)

    async def until(self, moment: Callable[[Window], float]) -> None:
        """Returns at that moment of the window as it is then, in CLOCK_BOOTTIME seconds; at once if it has passed."""
        while (left := moment(self.window) - self._clock.boottime()) > 0:
            await first(self._clock.sleep(left), self._shortened.next())
