"""One connection to a FakeLogind: what it asks, and the signals that it hears."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lastcall.errors import Unavailable
from lastcall.ports import Change, Inhibitor

if TYPE_CHECKING:
    from lastcall.lab.fake_logind import FakeLogind


class FakeSession:
    """``ports.LogindSession`` with a FakeLogind."""

    def __init__(self, logind: "FakeLogind") -> None:
        self._logind = logind
        self._heard: deque[Change] = deque()
        self._news = asyncio.Event()
        self._lost = False

    async def preparing(self) -> bool:
        """Whether a shutdown is being prepared."""
        return self._line().preparing

    async def max_delay(self) -> float:
        """The limit in seconds."""
        return self._line().limit

    async def take_lock(self, why: str) -> int:
        """A new lock; close it by FakeLogind.close."""
        return self._line().inhibit(why)

    async def inhibitors(self) -> Sequence[Inhibitor]:
        """The locks of which at least one copy is open."""
        return list({lock.pid: lock for lock in self._line().descriptors.values()}.values())

    async def scheduled(self) -> str:
        """The type of the shutdown that is scheduled or under way, or ""."""
        return self._line().kind

    async def reload(self) -> None:
        """Has the limit read again."""
        self._line().reload()

    async def change(self) -> Change:
        """The next thing heard, in order. Unavailable when the bus is lost."""
        while not self._heard:
            if self._lost:
                raise Unavailable("the connection to the message bus is lost")
            self._news.clear()
            await self._news.wait()
        return self._heard.popleft()

    async def unsettled(self) -> None:
        """Until something becomes otherwise, told by a signal or not."""
        if not self._lost:
            await self._logind.moved.next()

    def close(self) -> None:
        """Leaves the bus."""
        self._logind.leave(self)
        self.lose()

    def hear(self, change: Change) -> None:
        """A signal arrives."""
        self._heard.append(change)
        self._news.set()

    def lose(self) -> None:
        """The connection ends."""
        self._lost = True
        self._news.set()

    def _line(self) -> "FakeLogind":
        if self._lost:
            raise Unavailable("the connection to the message bus is lost")
        self._logind.check()
        return self._logind
