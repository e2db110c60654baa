"""Waits for several things at once, in an order that does not depend on memory addresses.

``asyncio.wait`` and ``asyncio.TaskGroup`` keep tasks in sets, so the order of their effects changes from run to run;
virtual time needs the same order for the same seed. ``asyncio.gather`` keeps the order. But before Python 3.12 it
returns one loop iteration later if its futures are done already, so it suits coroutines only.

``asyncio.timeout`` of Python 3.11.2 raises CancelledError instead of TimeoutError if its task was cancelled before, as
in a ``finally`` that releases something. ``timeout`` behaves the same on every Python.
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Self


async def wait_any(*futures: "asyncio.Future[Any]") -> None:
    """Waits until at least one future is done; leaves all as they are."""
    over = asyncio.get_running_loop().create_future()

    def end(_: object) -> None:
        if not over.done():
            over.set_result(None)

    for future in futures:
        future.add_done_callback(end)
    try:
        await over
    finally:
        for future in futures:
            future.remove_done_callback(end)


async def wait_all(*futures: "asyncio.Future[Any]") -> None:
    """Waits until all futures are done; leaves all as they are."""
    for future in futures:
        if not future.done():
            await wait_any(future)


async def wait_first(*awaitables: Awaitable[Any]) -> int:
    """Waits until one is done and returns the index of the first one, in the given order. Cancels the others.

    Raises that one's exception.
    """
    if len(awaitables) == 1:
        await awaitables[0]
        return 0
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        await wait_any(*tasks)
        index = next(i for i, task in enumerate(tasks) if task.done())
        tasks[index].result()
        return index
    finally:
        await cancel_and_wait(*tasks)


async def cancel_and_wait(*tasks: "asyncio.Future[Any]") -> None:
    """Cancels the tasks that are not done, and waits for them in order; drops their exceptions."""
    for task in tasks:
        task.cancel()
    await _wait_despite_cancel(tasks)


async def _wait_despite_cancel(tasks: "Sequence[asyncio.Future[Any]]") -> None:
    """Waits for all tasks. If the waiting task is cancelled, cancels them too, and still waits for their end."""
    given_up = None
    while not all(task.done() for task in tasks):
        try:
            await wait_all(*tasks)
        except asyncio.CancelledError as error:
            given_up = error
            for task in tasks:
                task.cancel()
    for task in tasks:
        if not task.cancelled():
            task.exception()  # asyncio logs exceptions that were never retrieved
    if given_up:
        raise given_up


class TimeLimit:
    """The asynchronous context manager that ``timeout`` returns. It can be entered only once."""

    def __init__(self, seconds: float | None) -> None:
        self._limit = asyncio.timeout(seconds)  # noqa: TID251 - the one place that mends it
        self._task: asyncio.Task[Any] | None = None
        self._requests = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        if self._task:
            self._requests = self._task.cancelling()
        await self._limit.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._limit.__aexit__(kind, error, trace)
        # An expired limit gets here in two cases. The task was cancelled before the limit began, and this Python
        # compares the requests with 0: that is a time-out. Or another cancelled the task during it: that is none.
        ours = self._task is not None and self._task.cancelling() <= self._requests
        if self._limit.expired() and ours and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error

    def expired(self) -> bool:
        """Whether the time ran out, so that the body was cancelled."""
        return self._limit.expired()

    def reschedule(self, when: float | None) -> None:
        """Moves the end to ``when``, in the event loop's time; None for no end. RuntimeError if the limit has ended."""
        self._limit.reschedule(when)


def timeout(seconds: float | None) -> TimeLimit:
    """Limits the body of ``async with``: cancels it after so many seconds and raises TimeoutError. None: no limit.

    If another task cancels this one during the body, CancelledError is raised and not TimeoutError.
    """
    return TimeLimit(seconds)


class OrderedTaskGroup:
    """Tasks that belong together, in start order."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []
        self._room = 64

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any]":
        """Starts a task in the group."""
        if len(self._tasks) >= self._room:
            self._tasks = [task for task in self._tasks if not _has_succeeded(task)]
            self._room = max(64, 2 * len(self._tasks))
        task = asyncio.create_task(work, name=name)
        self._tasks.append(task)
        return task

    @property
    def running_count(self) -> int:
        """The number of tasks that are not done."""
        return sum(not task.done() for task in self._tasks)

    async def join(self) -> None:
        """Waits for all tasks, including those started meanwhile; raises the first exception, in start order."""
        while self.running_count:
            await _wait_despite_cancel(tuple(self._tasks))
        for task in self._tasks:
            task.result()

    async def cancel(self) -> None:
        """Cancels the running tasks and waits for their end."""
        await cancel_and_wait(*self._tasks)


def _has_succeeded(task: "asyncio.Task[Any]") -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


class ChangeCounter:
    """Counts changes of something that is followed, from ``first`` on, for tasks that wait for the next one."""

    def __init__(self, first: int = 0) -> None:
        self._first = self.count = first
        self._changed = Signal()

    def add(self) -> None:
        """Counts a change, and wakes all that wait for one."""
        self.count += 1
        self._changed.set()

    def restart(self) -> None:
        """Counts from the first number again; wakes nobody."""
        self.count = self._first

    async def wait_for_change(self, seen: int) -> int:
        """Waits until the count is another than ``seen``, and returns it."""
        while self.count == seen:
            await self._changed.next()
        return self.count


class Signal:
    """A repeatable event that many tasks may wait for."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        self._room = 64

    def next(self) -> "asyncio.Future[None]":
        """A future that is done at the next ``set``."""
        if len(self._waiting) >= self._room:
            self._waiting = [future for future in self._waiting if not future.done()]
            self._room = max(64, 2 * len(self._waiting))
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    def set(self) -> None:
        """Wakes all waiting tasks, in the order in which they began to wait."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
