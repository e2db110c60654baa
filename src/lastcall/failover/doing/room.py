"""Room for so many at a time; who waits is let in by rank."""

import asyncio
import heapq
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count


class Room:
    """Of those that wait the lowest rank is next, and of the same rank who came first."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()

    @property
    def busy(self) -> bool:
        """Whether anything waits."""
        return any(not turn.done() for _, _, turn in self._waiting)

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
