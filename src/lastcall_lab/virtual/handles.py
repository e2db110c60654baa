"""Steps and timers of the virtual loop: asyncio's, without the work that only its debug mode needs.

A rehearsal makes some fifteen thousand of them. asyncio's ask the loop whether it is in debug mode, once when they are
made and once when they are cancelled, which is a third of what they cost.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any


class StepHandle(asyncio.Handle):
    """A callback of the next turn."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context | None = None,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None

    def cancel(self) -> None:
        """It will not run; what it would have called is released."""
        self._cancelled = True
        self._callback = None  # type: ignore[assignment]  # as asyncio does
        self._args = None  # type: ignore[assignment]


class StepTimer(asyncio.TimerHandle):
    """A callback of a later moment. The loop passes over it if it is cancelled."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context | None = None,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = False

    def cancel(self) -> None:
        """It will not run; what it would have called is released."""
        self._cancelled = True
        self._callback = None  # type: ignore[assignment]  # as asyncio does
        self._args = None  # type: ignore[assignment]
