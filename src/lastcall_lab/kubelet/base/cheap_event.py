"""A cheap event: a flag that coroutines wait for without a task per waiter.

Like ``asyncio.Event``, but waiting needs no task, and an event without waiters costs almost nothing. Each pod holds ten
of them for its whole life, and one process can run the pods of a thousand nodes.
"""

import asyncio


class CheapEvent:
    """Starts unset."""

    __slots__ = ("_set", "_waiting")

    def __init__(self) -> None:
        self._set = False
        self._waiting: tuple[asyncio.Future[None], ...] = ()

    def is_set(self) -> bool:
        """Whether the event is set."""
        return self._set

    def set(self) -> None:
        """Sets the event and wakes all waiters in the order in which they started to wait."""
        self._set = True
        waiting, self._waiting = self._waiting, ()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def clear(self) -> None:
        """Resets the event."""
        self._set = False

    def wait(self) -> "asyncio.Future[None]":
        """A future that is done once the event is set. Each caller gets its own and cancels it to stop waiting."""
        future = asyncio.get_running_loop().create_future()
        if self._set:
            future.set_result(None)
        else:
            self._waiting = (*(one for one in self._waiting if not one.done()), future)
        return future
