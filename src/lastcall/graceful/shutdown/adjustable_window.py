"""One pod's time window, which may become shorter during its termination."""

from collections.abc import Callable

from lastcall.aio import Signal, wait_first
from lastcall.graceful.planning.time_windows import TerminationWindow
from lastcall.ports.node import Clock


class AdjustableWindow:
    """A pod's window and the tasks that wait for a moment in it."""

    def __init__(self, window: TerminationWindow, clock: Clock) -> None:
        self.window = window
        """The current window."""
        self._clock = clock
        self._shortened = Signal()

    def shorten(self, window: TerminationWindow) -> None:
        """Replaces the window; a task that waits for a moment of the old window now waits for the new one's."""
        self.window = window
        self._shortened.set()

    async def wait_until_if_shortened(self, moment: Callable[[TerminationWindow], float]) -> None:
        """Returns at that moment if the window is shortened during the wait; otherwise it never returns."""
        await self._shortened.next()
        await self.wait_until(moment)

    async def wait_until(self, moment: Callable[[TerminationWindow], float]) -> None:
        """Returns at that moment of the current window (CLOCK_BOOTTIME seconds); at once if it has passed."""
        while (left := moment(self.window) - self._clock.boottime()) > 0:
            await wait_first(self._clock.sleep(left), self._shortened.next())
