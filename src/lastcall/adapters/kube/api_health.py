"""Remembers the last API server failure, so that callers can distrust their view."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from lastcall.adapters.kube import api_errors
from lastcall.adapters.kube.transport import ApiResponse, Chunks, Transport
from lastcall.errors import Unavailable
from lastcall.ports.node import Clock

PATIENCE = 2.0
"""Seconds after which a cancelled request counts as a failure of the server.

A request that is cancelled sooner may simply be unneeded: a read of a node during a fence call ends with the order.
Requests for Leases wait longer, but only at the very end of their time.
"""


RUN = 5
"""So many failed requests in a row mean that the API server, or the network to it, has failed."""
SHARE, AMONG, WITHIN = 1 / 3, 12, 60.0
"""So does this share of failures within so many seconds, among at least ``AMONG`` requests.

A server that fails some requests still serves: nodes renew their Leases at the next attempt, and actions are preceded
by live reads.
"""


class ApiHealth:
    """The last failure of the API server or of the network to it, shared by all its clients.

    A single error among successful answers is not a failure.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.failed: float | None = None
        """Boottime of the last failure; None if there was none."""
        self.trouble = ""
        """Its description, as the beginning of a sentence that says how long ago; empty if there was none."""
        self._alone = ""
        self.run = 0
        """The failed requests in a row up to now."""
        self._recent: deque[tuple[float, bool]] = deque()
        self._failures = 0
        """The failures among the recent requests."""

    def note_failure(self, what: str = "") -> None:
        """Records a failed request; ``what`` says which one, and how it failed."""
        self._alone = ""
        self.run += 1
        failed, every = self._count_request(failed=True)
        if self.run >= RUN:
            self.failed, said = self.now, f"{self.run} requests to the API server failed in a row"
        elif every >= AMONG and failed >= SHARE * every:
            self.failed, said = self.now, f"{failed} of {every} requests to the API server failed"
        else:
            return
        self.trouble = f"{said}, the last one ({what})" if what else f"{said}, the last one"

    def note_success(self) -> None:
        """Records an answer that is not a failure of the server."""
        self.run = 0
        self._count_request(failed=False)

    def _count_request(self, *, failed: bool) -> tuple[int, int]:
        """Counts one more request; returns how many failed, and of how many, within ``WITHIN``."""
        self._recent.append((self.now, failed))
        self._failures += failed
        while self._recent[0][0] <= self.now - WITHIN:
            self._failures -= self._recent.popleft()[1]
        return self._failures, len(self._recent)

    def note_read(self, target: str, *, failed: bool, what: str = "") -> None:
        """Records an answer to a GET of ``target``.

        Repeated failures at one target alone indicate a bad object, such as one that cannot be decoded any more. They
        count once, or an object that is read in each round would make the whole server count as failed.
        """
        if failed and target != self._alone:
            self.note_failure(what)
            self._alone = target
        elif not failed:
            self.note_success()
            if target == self._alone:
                self._alone = ""

    @property
    def now(self) -> float:
        """On the clock's boottime."""
        return self._clock.boottime()


class HealthTrackingTransport:
    """A transport that records failures of the server or the network, also in the middle of a watch."""

    def __init__(self, transport: Transport, health: ApiHealth) -> None:
        self._transport = transport
        self._health = health

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """``Transport.request``. A request that is cancelled after ``PATIENCE`` counts as unanswered."""
        asked, path = self._health.now, f"{method} {target.partition('?')[0]}"
        try:
            answer = await self._transport.request(method, target, headers, body, stream=stream)
        except Unavailable as error:
            self._health.note_failure(f"{path}: {error}")
            raise
        except asyncio.CancelledError:
            if self._health.now >= asked + PATIENCE:
                self._health.note_failure(f"{path}: no answer")
            raise
        failed, what = _is_server_failure(answer), f"{path}: {answer.status}"
        if method == "GET" and not stream:
            self._health.note_read(target, failed=failed, what=what)
        elif failed:
            self._health.note_failure(what)
        else:
            self._health.note_success()
        if isinstance(answer.body, bytes):
            return answer
        return replace(answer, body=_HealthTrackingChunks(answer.body, self._health, path))

    def close(self) -> None:
        """``Transport.close``."""
        self._transport.close()


def _is_server_failure(answer: ApiResponse) -> bool:
    """Whether the server itself has failed, not a webhook that it cannot call (its backend may be on a lost node)."""
    if answer.status < 500:
        return False
    return not (isinstance(answer.body, bytes) and api_errors.response_error(answer).is_by_webhook)


class _HealthTrackingChunks:
    """Chunks that record a failure when they break off."""

    def __init__(self, chunks: Chunks, health: ApiHealth, path: str) -> None:
        self._chunks = chunks
        self._health = health
        self._path = path

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except Unavailable as error:
            self._health.note_failure(f"{self._path}: {error}")
            raise

    async def aclose(self) -> None:
        await self._chunks.aclose()
