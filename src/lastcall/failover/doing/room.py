"""Room for so many at a time; who waits is let in by rank."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count

FAIR = 16
"""One of so many places goes to who has waited longest, whatever its rank: as long as others come, it would never have its turn."""


class Room:
    """Of those that wait the lowest rank is next, and of the same rank who came first; but see ``FAIR``."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: dict[int, deque[tuple[int, asyncio.Future[None]]]] = {}
        """By rank, in the order in which they came."""
        self._numbers = count()
        self._places = 0
        """So many places were given to those that waited."""

    @property
    def busy(self) -> bool:
        """Whether anything waits."""
        return any(not turn.done() for queue in self._waiting.values() for _, turn in queue)

    @asynccontextmanager
    async def place(self, rank: int) -> AsyncGenerator[None, None]:
        """Waits for a place, and has it within."""
        await self._enter(rank)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, rank: int) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(rank, deque()).append((next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was given room, and does not use it
                self._leave()
            raise

    def _leave(self) -> None:
        """Its room goes to the next one at once, so that nobody who comes just now is before those who wait."""
        turn = self._next()
        if turn:
            turn.set_result(None)
        else:
            self._free += 1

    def _next(self) -> "asyncio.Future[None] | None":
        """Who is let in; None if nothing waits."""
        heads = []
        for rank, queue in self._waiting.items():
            while queue and queue[0][1].done():  # it waits no more
                queue.popleft()
            if queue:
                heads.append((rank, queue[0][0]))
        if not heads:
            return None
        self._places += 1
        longest = self._places % FAIR == 0
        rank, _ = min(heads, key=lambda head: head[1] if longest else head[0])
        return self._waiting[rank].popleft()[1]
