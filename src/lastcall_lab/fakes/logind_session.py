"""One connection to a FakeLogind, with its requests and signals."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

from lastcall.aio import Signal
from lastcall.errors import Unavailable
from lastcall.ports.node import Inhibitor, LogindChange


class SessionHost(Protocol):
    """What a session needs of its FakeLogind."""

    moved: Signal
    """Set when a session may be answered otherwise than before."""

    @property
    def descriptors(self) -> Mapping[int, Inhibitor]:
        """The open copies of locks."""
        ...

    @property
    def is_preparing(self) -> bool:
        """The property PreparingForShutdown."""
        ...

    @property
    def limit(self) -> float:
        """The longest delay that logind grants, in seconds."""
        ...

    @property
    def kind(self) -> str:
        """The type of the shutdown that is scheduled or under way, or ""."""
        ...

    def check(self) -> None:
        """Unavailable if logind cannot be reached."""
        ...

    def inhibit(self, why: str) -> int:
        """Takes a lock and returns its descriptor. ShutdownUnderWay if a shutdown is being prepared."""
        ...

    def reload(self) -> None:
        """Reads the files of the limit again."""
        ...

    def leave(self, session: "FakeLogindSession") -> None:
        """Forgets a session that is closed."""
        ...


class FakeLogindSession:
    """``ports.node.LogindSession`` with a FakeLogind."""

    def __init__(self, logind: SessionHost) -> None:
        self._logind = logind
        self._heard: deque[LogindChange] = deque()
        self._news = asyncio.Event()
        self._lost = False

    async def is_preparing(self) -> bool:
        """Whether a shutdown is being prepared."""
        return self._connected_logind().is_preparing

    async def max_delay(self) -> float:
        """The limit in seconds."""
        return self._connected_logind().limit

    async def take_lock(self, why: str) -> int:
        """Takes a new lock; close it by FakeLogind.close."""
        return self._connected_logind().inhibit(why)

    async def list_inhibitors(self) -> Sequence[Inhibitor]:
        """The locks with at least one open copy."""
        return list({lock.pid: lock for lock in self._connected_logind().descriptors.values()}.values())

    async def scheduled_shutdown(self) -> str:
        """The type of the shutdown that is scheduled or under way, or ""."""
        return self._connected_logind().kind

    async def reload(self) -> None:
        """Has the limit read again."""
        self._connected_logind().reload()

    async def next_change(self) -> LogindChange:
        """The next change, in order. Raises Unavailable when the bus is lost."""
        while not self._heard:
            if self._lost:
                raise Unavailable("the connection to the message bus is lost")
            self._news.clear()
            await self._news.wait()
        return self._heard.popleft()

    async def wait_for_change(self) -> None:
        """Waits for any change of state, with or without a signal."""
        if not self._lost:
            await self._logind.moved.next()

    def close(self) -> None:
        """Leaves the bus."""
        self._logind.leave(self)
        self.lose()

    def hear(self, change: LogindChange) -> None:
        """Delivers a signal."""
        self._heard.append(change)
        self._news.set()

    def lose(self) -> None:
        """Ends the connection."""
        self._lost = True
        self._news.set()

    def _connected_logind(self) -> SessionHost:
        if self._lost:
            raise Unavailable("the connection to the message bus is lost")
        self._logind.check()
        return self._logind
