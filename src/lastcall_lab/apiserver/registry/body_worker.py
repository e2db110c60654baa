"""Processes large bodies outside of the event loop, so that other clients do not wait."""

import asyncio
import gc
from collections.abc import Callable
from typing import Protocol, TypeVar

from lastcall_lab.apiserver.values.request import Request

LARGE = 64 * 1024
"""Bodies above this size (bytes) would delay other clients too much."""

Result = TypeVar("Result")


class BodyWorker(Protocol):
    """Runs work for a request that neither reads nor changes the store."""

    async def __call__(self, request: Request, work: Callable[[], Result]) -> Result:
        """Returns or raises the result of ``work``."""
        ...


async def run_inline(request: Request, work: Callable[[], Result]) -> Result:
    """A ``BodyWorker`` that runs the work at once, for virtual time and single clients."""
    return work()


class BodyWorkerThread:
    """A ``BodyWorker`` for network clients: a thread that processes one large body at a time.

    Parallel threads would not be faster, and each would need memory: 3 MB of YAML become some hundred MB.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def __call__(self, request: Request, work: Callable[[], Result]) -> Result:
        """Returns or raises the result of ``work``."""
        if len(request.body) < LARGE:
            return work()
        async with self._turn:
            return await asyncio.to_thread(_run_without_gc, work)


def _run_without_gc(work: Callable[[], Result]) -> Result:
    """Disables the garbage collector: with a million new objects it would stop all threads for seconds."""
    running = gc.isenabled()
    gc.disable()
    try:
        return work()
    finally:
        if running:
            gc.enable()
