"""How many writes to pods are under way at a time: few, as long as the API server answers them quickly."""

import asyncio
from types import TracebackType

from lastcall.aio import Signal, wait_first
from lastcall.ports.node import Clock

FIRST_CALLS, MOST_CALLS = 3, 10
"""Writes at a time, at first and at most: more would only queue at the server (API Priority and Fairness)."""

GROW_SECONDS = 0.02
"""Seconds that a write waits for its turn before one more is let in: longer than a near server needs for one."""


class CallLimit:
    """An asynchronous context manager around each write; those that wait are let in by their order.

    A new connection, with its handshake, takes more CPU than a write. So they are opened when writes wait, and not for
    pods that a few connections serve just as soon.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue = asyncio.Lock()
        self._left = Signal()
        self._running = 0
        self._waited = 0.0

    @property
    def _limit(self) -> int:
        return min(MOST_CALLS, FIRST_CALLS + int(self._waited / GROW_SECONDS))

    async def __aenter__(self) -> None:
        async with self._queue:
            while self._running >= self._limit:
                began = self._clock.boottime()
                await wait_first(self._left.next(), self._clock.sleep(GROW_SECONDS))
                self._waited += self._clock.boottime() - began
            self._running += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running -= 1
        self._left.set()
