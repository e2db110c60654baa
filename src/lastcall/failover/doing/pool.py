"""Calls to the API server, many at a time but not too many; a server that asks for a pause gets it."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

from lastcall.errors import NotNow
from lastcall.ports import Clock

T = TypeVar("T")

PAUSE = 1.0
"""Seconds, if a server that has too much to do does not say how long it needs."""
LONGEST = 32.0
"""Seconds for which all wait at most because of one answer: kube-apiserver that is too busy asks for no more
(``maxRetryAfter`` in its ``dropped_requests_tracker.go``)."""
_TRIES = 5


class Pool:
    """For the whole controller: ``room`` calls are under way at a time, over all nodes."""

    def __init__(self, room: int, clock: Clock) -> None:
        self._free = room
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._clock = clock
        self._until = 0.0

    async def run(self, call: Callable[[], Awaitable[T]], *, rank: int = 0) -> T:
        """The call's result; one that is answered by 429 is made again, after the pause that the server asks for.

        All others wait for the same pause: it is the server that is busy, not one object. NotNow at once if it is a
        webhook that asks for it, which says nothing of other objects; and if it is longer than ``LONGEST``, for which
        all wait then. Of those that wait for room the lowest ``rank`` is next, and of the same rank who came first.
        """
        await self._enter(rank)
        try:
            return await self._tried(call)
        finally:
            self._leave()

    async def _tried(self, call: Callable[[], Awaitable[T]]) -> T:
        tries = 0
        while True:
            while (left := self._until - self._clock.boottime()) > 0:
                await self._clock.sleep(left)
            try:
                return await call()
            except NotNow as error:
                if error.by_webhook:
                    raise
                tries += 1
                wanted = error.after or PAUSE
                self._until = self._clock.boottime() + min(wanted, LONGEST)
                if tries == _TRIES or wanted > LONGEST:
                    raise

    async def _enter(self, rank: int) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (rank, next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was given room, and does not use it
                self._leave()
            raise

    def _leave(self) -> None:
        """Its room goes to the next one at once, so that nobody who comes just now is before those who wait."""
        while self._waiting:
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
