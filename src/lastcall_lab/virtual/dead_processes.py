"""Cleanup of coroutines and generators of dead processes, after their run has ended."""

import contextlib
import logging
import sys
import warnings
from collections.abc import Coroutine, Generator
from typing import Any

_MOST_WAITS = 100
"""Limit for the coroutine frames of one task; no real task nests that deep."""


class _ProcessDied(BaseException):
    """Raised at the await at which a process died."""


def unwind_coroutine(coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any]) -> None:
    """Ends it from its innermost await outwards. Each ``finally`` that waits takes one turn more; who ignores all is left.

    ``close`` does not: before Python 3.13 it passes over an async generator that is being iterated. What waits within that
    complains then whenever it is collected ("aclose(): asynchronous generator is already running").
    """
    with contextlib.suppress(BaseException):  # whatever it is, it is none of the living's business
        for _ in range(_MOST_WAITS):
            coroutine.throw(_ProcessDied)


@contextlib.contextmanager
def silence_warnings() -> Generator[None]:
    """No warnings, no log, and nothing about exceptions that come from destructors."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    disabled = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        sys.unraisablehook = hook
