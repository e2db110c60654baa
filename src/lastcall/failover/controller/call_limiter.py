"""Calls to the API server, many at a time but not too many; a server that asks for a pause gets it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from lastcall.errors import TooManyRequests
from lastcall.failover.controller.ranked_semaphore import RankedSemaphore
from lastcall.ports.node import Clock

T = TypeVar("T")

PAUSE = 1.0
"""Seconds, if a server that has too much to do does not say how long it needs."""
LONGEST = 32.0
"""Seconds for which all wait at most because of one answer: kube-apiserver that is too busy asks for no more
(``maxRetryAfter`` in its ``dropped_requests_tracker.go``)."""
_TRIES = 5


class CallLimiter:
    """For the whole controller: ``room`` calls are under way at a time, over all nodes."""

    def __init__(self, room: int, clock: Clock) -> None:
        self._room = RankedSemaphore(room)
        self._clock = clock
        self._until = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether calls wait for room."""
        return self._room.has_waiters

    async def run(
        self, call: Callable[[], Awaitable[T]], *, rank: int = 0, soon: Callable[[], object] | None = None
    ) -> T:
        """The call's result; one that is answered by 429 is made again, after the pause that the server asks for.

        All others wait for the same pause: it is the server that is busy, not one object. NotNow at once if it is a
        webhook that asks for it, which says nothing of other objects; and if it is longer than ``LONGEST``, for which
        all wait then. Of those that wait for room the lowest ``rank`` is next, and of the same rank who came first;
        ``soon`` is called when the turn of one that waits is near.
        """
        async with self._room.acquire_slot(rank, soon):
            return await self._call_with_retries(call)

    async def _call_with_retries(self, call: Callable[[], Awaitable[T]]) -> T:
        tries = 0
        while True:
            while (left := self._until - self._clock.boottime()) > 0:
                await self._clock.sleep(left)
            try:
                return await call()
            except TooManyRequests as error:
                if error.is_by_webhook:
                    raise
                tries += 1
                wanted = error.retry_after or PAUSE
                self._until = self._clock.boottime() + min(wanted, LONGEST)
                if tries == _TRIES or wanted > LONGEST:
                    raise
