"""What the writes of one shutdown learn about the API server: whether it answers, and what the report shall say of it."""

import asyncio
import math
from collections.abc import Callable

from lastcall.aio import Signal
from lastcall.errors import LastcallError, Unavailable
from lastcall.model.duration import format_seconds
from lastcall.ports.node import Clock

RECOVERY_SECONDS = 10.0
"""How long a server that has just returned may refuse what it permits, in seconds.

kube-apiserver serves requests before the caches of its Node authorizer, RBAC and NodeRestriction are filled: measured
with 1.36.2, a DELETE by a kubelet's identity got 404 for a pod that existed.
"""


class ServerContact:
    """Told of every answer and failure; ``note`` gets a sentence when the server falls silent, and when it is back."""

    def __init__(self, clock: Clock, note: Callable[[str], None]) -> None:
        self._clock = clock
        self._note = note
        self._answers = Signal()
        self._silent_since: float | None = None
        self._returned_at = -math.inf
        self._refusals: set[str] = set()

    @property
    def is_recovering(self) -> bool:
        """Whether the server was away until less than ``RECOVERY_SECONDS`` ago: its refusals may not last."""
        return self._silent_since is not None or self._clock.boottime() < self._returned_at + RECOVERY_SECONDS

    def next_answer(self) -> "asyncio.Future[None]":
        """A future that is done at the next answer."""
        return self._answers.next()

    def wake_waiters(self) -> None:
        """Wakes those who wait for an answer, because a write has ended in another way."""
        self._answers.set()

    def record_answer(self) -> None:
        """The server has accepted a write."""
        if self._silent_since is not None:
            silent = self._clock.boottime() - self._silent_since
            self._note(
                f"the API server answers again after {format_seconds(round(silent))}: what it lacks is written now"
            )
            self._silent_since = None
            self._returned_at = self._clock.boottime()
        self._answers.set()

    def record_failure(self, error: LastcallError, what: str) -> None:
        """A write has failed; ``what`` is the consequence, as the beginning of a sentence. Each is noted once."""
        if not isinstance(error, Unavailable):
            self._note_once(f"{what}: {error}")
        elif self._silent_since is None:
            self._silent_since = self._clock.boottime()
            self._note(f"the API server is not informed of the shutdown, trying again: {error}")

    def _note_once(self, text: str) -> None:
        if text not in self._refusals:
            self._refusals.add(text)
            self._note(text)
