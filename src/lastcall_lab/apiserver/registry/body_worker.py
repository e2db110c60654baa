"""Work on large bodies beside the event loop, so that other clients do not wait for it."""

import asyncio
import gc
from collections.abc import Callable
from typing import Protocol, TypeVar

from lastcall_lab.apiserver.values.request import Request

LARGE = 64 * 1024
"""Bytes of a body whose reading takes longer than others should wait."""

Result = TypeVar("Result")


class BodyWorker(Protocol):
    """Who does work that neither reads nor changes the store, for a request."""

    async def __call__(self, request: Request, work: Callable[[], Result]) -> Result:
        """What ``work`` returns or raises."""
        ...


async def run_inline(request: Request, work: Callable[[], Result]) -> Result:
    """``BodyWorker`` where nobody else waits, and in virtual time."""
    return work()


class BodyWorkerThread:
    """``BodyWorker`` for clients of the network: what has a large body is done in a thread, one such request at a time.

    Several at once would be no faster, and would need memory for each: 3 MB of YAML become some hundred MB.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def __call__(self, request: Request, work: Callable[[], Result]) -> Result:
        """What ``work`` returns or raises."""
        if len(request.body) < LARGE:
            return work()
        async with self._turn:
            return await asyncio.to_thread(_run_without_gc, work)


def _run_without_gc(work: Callable[[], Result]) -> Result:
    """Without the garbage collector: it stops all threads, for seconds while there are a million new objects."""
    running = gc.isenabled()
    gc.disable()
    try:
        return work()
    finally:
        if running:
            gc.enable()
