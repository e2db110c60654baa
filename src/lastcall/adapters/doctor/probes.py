"""Runs probes that may fail: their result is the fact, or the reason why it is unknown."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from lastcall.aio import timeout
from lastcall.doctor.facts import UnknownFact

T = TypeVar("T")

LIMIT_SECONDS = 2.0
"""Seconds that one probe of another process may take."""


def run_probe(probe: Callable[[], T]) -> T | UnknownFact:
    """The probe's result, or why it fails, whatever it raises."""
    try:
        return probe()
    except Exception as error:
        return UnknownFact(reason=_error_reason(error))


async def await_probe(probe: Awaitable[T]) -> T | UnknownFact:
    """The same for an asynchronous probe, but no longer than the limit."""
    try:
        async with timeout(LIMIT_SECONDS):
            return await probe
    except TimeoutError:
        return UnknownFact(reason=f"no answer within {LIMIT_SECONDS:g} s")
    except Exception as error:
        return UnknownFact(reason=_error_reason(error))


def _error_reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__
