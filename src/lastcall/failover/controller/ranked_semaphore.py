"""A semaphore that admits waiters by rank."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count

FAIR = 16
"""One slot out of this many goes to the longest waiter, whatever its rank, so that a stream of lower ranks cannot
starve it.
"""


@dataclass(frozen=True, slots=True)
class _Waiter:
    """A waiter; ``soon`` is called when its turn is near."""

    number: int
    turn: asyncio.Future[None]
    soon: Callable[[], object] | None


class RankedSemaphore:
    """Admits the lowest rank first, and within a rank first come, first served; see ``FAIR`` for the exception."""

    def __init__(self, size: int) -> None:
        self._size = self._free = size
        self._near = max(1, size // 2)
        """A turn is near if it is among this many next ones of its rank."""
        self._waiting: dict[int, deque[_Waiter]] = {}
        """By rank, in the order of arrival."""
        self._numbers = count()
        self._places = 0
        """The number of slots given to waiters so far."""

    @property
    def has_waiters(self) -> bool:
        """Whether a call waits."""
        return any(not one.turn.done() for queue in self._waiting.values() for one in queue)

    @property
    def has_holders(self) -> bool:
        """Whether a call holds a slot."""
        return self._free < self._size

    @asynccontextmanager
    async def acquire_slot(self, rank: int, soon: Callable[[], object] | None = None) -> AsyncGenerator[None, None]:
        """Waits for a slot and holds it. If it has to wait, ``soon`` is called at most once, when its turn is near."""
        await self._acquire_slot(rank, soon)
        try:
            yield
        finally:
            self._release_slot()

    async def _acquire_slot(self, rank: int, soon: Callable[[], object] | None) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault(rank, deque())
        queue.append(_Waiter(next(self._numbers), turn, soon))
        if soon and len(queue) <= self._near:
            soon()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was given room, and does not use it
                self._release_slot()
            raise

    def _release_slot(self) -> None:
        """Hands the slot to the next waiter (FIFO within a rank), so that newcomers cannot overtake."""
        turn = self._next_turn()
        if turn:
            turn.set_result(None)
        else:
            self._free += 1

    def _next_turn(self) -> "asyncio.Future[None] | None":
        """The next waiter; None if there is none."""
        heads = []
        for rank, queue in self._waiting.items():
            while queue and queue[0].turn.done():  # it waits no more
                self._take_turn(queue)
            if queue:
                heads.append((rank, queue[0].number))
        if not heads:
            return None
        self._places += 1
        longest = self._places % FAIR == 0
        rank, _ = min(heads, key=lambda head: head[1] if longest else head[0])
        return self._take_turn(self._waiting[rank])

    def _take_turn(self, queue: deque[_Waiter]) -> "asyncio.Future[None]":
        """Removes the first waiter; another one's turn may then be near."""
        first = queue.popleft()
        if len(queue) >= self._near:
            near = queue[self._near - 1]
            if near.soon and not near.turn.done():
                near.soon()
        return first.turn
