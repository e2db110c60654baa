"""Calls to the API server, many at a time but not too many; a server that asks for a pause gets it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lastcall.errors import NotNow
from lastcall.ports import Clock

T = TypeVar("T")

PAUSE = 1.0
"""Seconds, if a server that has too much to do does not say how long it needs."""
_TRIES = 5


class Pool:
    """For the whole controller: ``room`` calls are under way at a time, over all nodes."""

    def __init__(self, room: int, clock: Clock) -> None:
        self._room = asyncio.Semaphore(room)
        self._clock = clock
        self._until = 0.0

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """The call's result; one that is answered by 429 is made again, after the pause that the server asks for.

        All others wait for the same pause: it is the server that is busy, not one object.
        """
        tries = 0
        async with self._room:
            while True:
                while (left := self._until - self._clock.boottime()) > 0:
                    await self._clock.sleep(left)
                try:
                    return await call()
                except NotNow as error:
                    tries += 1
                    if tries == _TRIES:
                        raise
                    self._until = self._clock.boottime() + (error.after or PAUSE)
