"""Limits concurrent calls to the API server, and obeys the server's ``Retry-After``."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from lastcall.errors import TooManyRequests
from lastcall.failover.controller.ranked_semaphore import RankedSemaphore
from lastcall.ports.node import Clock

T = TypeVar("T")

PAUSE = 1.0
"""Seconds to wait if an overloaded server does not say how long."""
LONGEST = 32.0
"""The most seconds for which one answer delays all calls: an overloaded kube-apiserver asks for no more
(``maxRetryAfter`` in its ``dropped_requests_tracker.go``).
"""
_TRIES = 5


class CallLimiter:
    """Limits the calls of the whole controller, over all nodes, to ``room`` at a time."""

    def __init__(self, room: int, clock: Clock) -> None:
        self._room = RankedSemaphore(room)
        self._clock = clock
        self._until = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether calls wait for a slot."""
        return self._room.has_waiters

    @property
    def is_working(self) -> bool:
        """Whether calls are under way."""
        return self._room.has_holders

    async def run(
        self, call: Callable[[], Awaitable[T]], *, rank: int = 0, soon: Callable[[], object] | None = None
    ) -> T:
        """Runs the call and returns its result; after a 429 it is retried, after the pause that the server asks for.

        All other calls wait for the same pause, because the server is busy, not one object. TooManyRequests is raised
        at once if a webhook asks for the pause, which concerns no other object, and if the pause exceeds ``LONGEST``,
        for which all calls wait then. Of the waiting calls the lowest ``rank`` runs next, then first come, first
        served. ``soon`` is called when a waiting call's turn is near.
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
