"""A hash over everything that happens in a run: equal hashes mean equal runs."""

import asyncio
from collections.abc import Callable
from hashlib import blake2b
from typing import Any


class Trace:
    """A running hash over lines. ``listen`` receives each line, to find where two runs diverge."""

    def __init__(self, listen: Callable[[str], object] | None = None) -> None:
        self._hash = blake2b(digest_size=16)
        self._listen = listen

    def add(self, now: float, who: str, what: str) -> None:
        """Adds one line: virtual seconds, the process, and what it does."""
        line = f"{now!r} {who} {what}\n"
        self._hash.update(line.encode())
        if self._listen:
            self._listen(line)

    def digest(self) -> str:
        """The hash of all lines so far, in hexadecimal."""
        return self._hash.hexdigest()


def step_name(handle: asyncio.Handle) -> str:
    """A task's name, or a callback's: the same in every run."""
    callback: Any = handle._callback  # type: ignore[attr-defined]  # noqa: SLF001  (there is no other way to it)
    doer = getattr(callback, "__self__", None)
    if isinstance(doer, asyncio.Task):
        return doer.get_name()
    return getattr(callback, "__qualname__", None) or type(callback).__name__
