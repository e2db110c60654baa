"""The announcement of a pod's end, for which its SIGTERM waits: its object is deleted, and traffic turns away from it."""

import asyncio
from collections.abc import Callable

from lastcall.aio import cancel_and_wait
from lastcall.graceful.shutdown.adjustable_window import AdjustableWindow
from lastcall.model.own_pods import serves_other_pods
from lastcall.model.shutdown import JournalEvent, NoteWritten
from lastcall.ports.node import Clock, NodeFace, RunningPod


class PodAnnouncement:
    """``NodeFace.begin_pod`` for one pod, and whether a cancelled shutdown still leaves the pod as it is.

    ``is_touched``: a hook or SIGTERM has been recorded. ``called_off`` returns whether the shutdown was cancelled.
    """

    def __init__(
        self,
        live: RunningPod,
        time: AdjustableWindow,
        *,
        node: NodeFace,
        clock: Clock,
        tell: Callable[[JournalEvent], None],
        called_off: Callable[[], bool],
        is_touched: bool,
    ) -> None:
        self._live = live
        self._time = time
        self._node = node
        self._clock = clock
        self._tell = tell
        self._called_off = called_off
        self._is_touched = is_touched
        self._first: asyncio.Task[bool] | None = None

    def start(self) -> None:
        """Begins the announcement."""
        self._first = asyncio.create_task(self.announce(), name=f"announce {self._live.pod.key}")

    @property
    def under_way(self) -> "asyncio.Task[bool] | None":
        """The announcement that was started; None once it is done."""
        return self._first if self._first and not self._first.done() else None

    async def announce(self) -> bool:
        """As ``NodeFace.begin_pod``; a failure is recorded, and the pod gets SIGTERM without further wait.

        A CSI driver may wait for volumes for as long as SIGTERM can wait.
        """
        window = self._time.window
        until = window.sigterm_deadline if serves_other_pods(self._live.pod) else window.traffic_deadline
        try:
            return await self._node.begin_pod(self._live, window.grace, until)
        except Exception as error:
            text = f"{self._live.pod.key} is not announced: {type(error).__name__}: {error}"
            self._tell(NoteWritten(at=self._clock.boottime(), text=text))
            return False

    def mark_touched(self) -> None:
        """A hook of the pod, or SIGTERM, is about to be sent: a cancellation does not take that back."""
        self._is_touched = True

    def spares_pod(self) -> bool:
        """Whether the shutdown was cancelled before anything was done that the cancellation does not take back."""
        first = self._first
        is_reversible = first is not None and first.done() and not first.cancelled() and first.result()
        return is_reversible and self._called_off() and not self._is_touched

    async def cancel(self) -> None:
        """Ends the announcement under way."""
        if self._first:
            await cancel_and_wait(self._first)
