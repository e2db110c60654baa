"""An event loop whose clock jumps: hours of waiting in milliseconds, in the same order every time.

No threads and no sockets: what waits must wait for a timer or for another task.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Deadlock(RuntimeError):
    """Every task waits, and no timer is set that could wake one."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs what is ready in order of arrival; when nothing is, time jumps to the next timer."""

    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._order = itertools.count()
        self._failure: BaseException | None = None
        self.set_exception_handler(self._fail)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """A timer; those of one moment run in the order in which they were set."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), handle))
        return handle

    def run_forever(self) -> None:
        """Until stopped; Deadlock when nothing can happen any more. An exception that nobody handles is raised."""
        previous = asyncio._get_running_loop()  # noqa: SLF001  (as BaseEventLoop itself does)
        asyncio._set_running_loop(self)  # noqa: SLF001
        try:
            while not self._stopping:
                self._turn()
        finally:
            self._stopping = False
            asyncio._set_running_loop(previous)  # noqa: SLF001

    def _turn(self) -> None:
        ready = self._ready  # type: ignore[attr-defined]
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not ready:
            if not self._timers:
                raise Deadlock(f"at {self._now:.3f} s every task waits and no timer is set")
            self._now = max(self._now, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now:
            ready.append(heapq.heappop(self._timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()  # noqa: SLF001
        if self._failure:
            failure, self._failure = self._failure, None
            raise failure

    def _fail(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        exception = context.get("exception")
        if isinstance(exception, BaseException) and not self._failure:
            self._failure = exception

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are passed over when their time comes."""

    def _write_to_self(self) -> None:
        """There is no selector to wake."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs ``main`` to its end in virtual time, which begins at 0."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        left = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()


class VirtualClock:
    """``ports.Clock`` on the running virtual loop; the wall clock begins at ``epoch`` (seconds since 1970)."""

    def __init__(self, epoch: float = 1_800_000_000.0) -> None:
        self._epoch = epoch

    def boottime(self) -> float:
        """Virtual seconds."""
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        """Virtual wall clock."""
        return self._epoch + self.boottime()

    async def sleep(self, seconds: float) -> None:
        """Waits in virtual time."""
        await asyncio.sleep(max(0.0, seconds))
