"""The owner of a task or a callback: the process in whose context it was started."""

import asyncio
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from typing import Any, Protocol
from weakref import WeakSet


class TaskOwner(Protocol):
    """A process, as the loop sees it."""

    name: str
    alive: bool
    tasks: "WeakSet[OwnedTask]"
    generators: WeakSet[AsyncGenerator[Any, Any]]

    def admit_step(self, handle: asyncio.Handle) -> bool:
        """Whether this step runs now; it is dropped or kept for later if not. It may die of being asked."""
        ...

    def end_silently(self) -> None:
        """The run is over: it dies, and nobody hears of it."""
        ...


OWNER: ContextVar[TaskOwner | None] = ContextVar("owner", default=None)
"""Inherited by tasks, callbacks and timers, as contexts are."""


class OwnedTask(asyncio.Task[Any]):
    """A task with its owner and its number in the loop."""

    owner: TaskOwner | None
    number: int

    def cancel(self, msg: Any | None = None) -> bool:
        """As every task's; but a dead one's is over at once for who waits for it, and its code hears nothing.

        Without this, who awaits a dead task could not be cancelled himself: asyncio hands a cancellation on to what
        is awaited, and waits until that has ended.
        """
        if self.owner is None or self.owner.alive:
            return super().cancel(msg)
        return asyncio.Future.cancel(self, msg)
