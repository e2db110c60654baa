"""Something that is so or not, and can be waited for.

As ``asyncio.Event``, but it is waited for without a task, and one for which nobody waits costs next to nothing: each pod
has ten, for as long as it runs, and one process has the pods of a thousand nodes.
"""

import asyncio


class CheapEvent:
    """Not set to begin with."""

    __slots__ = ("_set", "_waiting")

    def __init__(self) -> None:
        self._set = False
        self._waiting: tuple[asyncio.Future[None], ...] = ()

    def is_set(self) -> bool:
        """Whether it is so."""
        return self._set

    def set(self) -> None:
        """It is so: all who wait go on, in the order in which they came."""
        self._set = True
        waiting, self._waiting = self._waiting, ()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def clear(self) -> None:
        """It is not so any more."""
        self._set = False

    def wait(self) -> "asyncio.Future[None]":
        """Done when it is so; one's own, to be cancelled by who does not wait any more."""
        future = asyncio.get_running_loop().create_future()
        if self._set:
            future.set_result(None)
        else:
            self._waiting = (*(one for one in self._waiting if not one.done()), future)
        return future
