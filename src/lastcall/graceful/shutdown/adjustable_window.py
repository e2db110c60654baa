"""The time that one pod may take, which can become shorter while its end is under way."""

from collections.abc import Callable

from lastcall.aio import Signal, wait_first
from lastcall.graceful.planning.time_windows import TerminationWindow
from lastcall.ports.node import Clock


class AdjustableWindow:
    """A pod's window and whoever waits for a moment of it."""

    def __init__(self, window: TerminationWindow, clock: Clock) -> None:
        self.window = window
        """As it is now."""
        self._clock = clock
        self._shortened = Signal()

    def shorten(self, window: TerminationWindow) -> None:
        """From now on this window holds; whoever waits for a moment of the old one waits for the new one."""
        self.window = window
        self._shortened.set()

    async def wait_until_if_shortened(self, moment: Callable[[TerminationWindow], float]) -> None:
        """Returns at that moment if the window is shortened while this waits; else it never returns."""
        await self._shortened.next()
        await self.wait_until(moment)

    async def wait_until(self, moment: Callable[[TerminationWindow], float]) -> None:
        """Returns at that moment of the window as it is then, in CLOCK_BOOTTIME seconds; at once if it has passed."""
        while (left := moment(self.window) - self._clock.boottime()) > 0:
            await wait_first(self._clock.sleep(left), self._shortened.next())
