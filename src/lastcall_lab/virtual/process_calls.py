"""Calls and streams between processes, and what both sides see when one of them dies."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Generic, Self, TypeVar

from lastcall.aio import Signal
from lastcall.errors import Unavailable
from lastcall_lab.virtual.process import VirtualProcess, current_process

T = TypeVar("T")

_WINDOW = 64
"""Items of a stream in transit; when it is full, the source waits for the reader."""


async def run_within(process: VirtualProcess, work: Coroutine[Any, Any, T], name: str = "call") -> T:
    """Runs ``work`` as a task of ``process`` and hands back its result or its exception, as over a connection.

    - The caller dies: the work goes on to its end, and nobody hears of it.
    - ``process`` dies: the work is dead, and the caller gets Unavailable; whether it has happened he does not know.
      The same at once if ``process`` is dead already, and if somebody else cancels the work.
    - The caller is cancelled: so is the work, and the caller does not wait for its end.

    A caller in ``process`` itself simply awaits. An async generator that ``work`` returns is not covered: its steps
    would be the caller's. See ``stream_within``.
    """
    if current_process() is process:
        return await work
    if not process.alive:
        work.close()
        raise Unavailable(f"{process.name} is dead")
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    task = process.start(work, name)
    forget = process.on_death(lambda: _resolve_end(over))
    task.add_done_callback(lambda _: _resolve_end(over))
    try:
        await over
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        forget()
    if not task.done():
        raise Unavailable(f"{process.name} has died")
    if task.cancelled():
        raise Unavailable(f"{process.name} has given up")
    return task.result()


def stream_within(process: VirtualProcess, source: AsyncIterator[T], name: str = "stream") -> "ProcessStream[T]":
    """The items of ``source``, which is iterated by a task of ``process``, as over a connection.

    - The reader's process dies, or the reader calls ``aclose``: the task is cancelled and ``source`` closed.
    - ``process`` dies: the reader gets what was under way, and then Unavailable.
    - An exception of ``source`` is raised where it stands among the items.
    """
    return ProcessStream(process, source, name)


class ProcessStream(Generic[T]):
    """An async iterator; ``aclose`` may be called twice, also after the end."""

    def __init__(self, process: VirtualProcess, source: AsyncIterator[T], name: str) -> None:
        self._process = process
        self._source = source
        self._items: deque[T] = deque()
        self._end: Exception | None = None
        self._arrived, self._taken = Signal(), Signal()
        self._forget: list[Callable[[], None]] = []
        if not process.alive:
            self._end_stream(Unavailable(f"{process.name} is dead"))
            return
        self._task = process.start(self._pump_items(), name)
        self._forget.append(process.on_death(lambda: self._end_stream(Unavailable(f"{process.name} has died"))))
        reader = current_process()
        if reader and reader is not process:
            self._forget.append(reader.on_death(self._task.cancel))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """The next item; cancelling loses none."""
        while not self._items:
            if self._end:
                raise self._end
            await self._arrived.next()
        self._taken.set()
        return self._items.popleft()

    async def aclose(self) -> None:
        """Gives up what has not been read."""
        self._items.clear()
        self._end_stream(StopAsyncIteration())
        if self._process.alive:
            self._task.cancel()

    async def _pump_items(self) -> None:
        try:
            async for item in self._source:
                self._items.append(item)
                self._arrived.set()
                while len(self._items) >= _WINDOW:
                    await self._taken.next()
            self._end_stream(StopAsyncIteration())
        except Exception as error:  # it is the reader's
            self._end_stream(error)
        finally:
            if aclose := getattr(self._source, "aclose", None):
                await aclose()
            self._end_stream(Unavailable(f"{self._process.name} has given up"))

    def _end_stream(self, end: Exception) -> None:
        if self._end is None:
            self._end = end
            for forget in self._forget:
                forget()
            self._arrived.set()


def _resolve_end(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)
