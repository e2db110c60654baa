"""When requests to an API server last failed: who acts on what he sees there has to know."""

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
"""Seconds after which it tells of the server that an answer is not waited for any longer.

Before, it need not be wanted any more: who looks at a node while a fence switches it off stops with the order. Leases are
waited for longer than that, but at their very end.
"""


RUN = 5
"""So many requests that fail one after the other show that the API server, or the way to it, has failed."""
SHARE, AMONG, WITHIN = 1 / 3, 12, 60.0
"""So does this share of the requests of as many seconds, if there were at least ``AMONG``. A server that fails at some of
them still serves: nodes renew their Leases at the next attempt, and what is done is read live before."""


class ApiHealth:
    """When the API server, or the way to it, last failed; for all who ask it. One error among answers is no failure."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.failed: float | None = None
        """On the clock's boottime; None if it never has."""
        self.trouble = ""
        """What that was, as the beginning of a sentence that says how long ago; empty if it never has."""
        self._alone = ""
        self.run = 0
        """So many requests have failed one after the other, up to now."""
        self._recent: deque[tuple[float, bool]] = deque()
        self._failures = 0
        """Of the recent ones."""

    def note_failure(self, what: str = "") -> None:
        """A request has failed now; ``what``: which, and how."""
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
        """A request was answered, and the server has not failed at it."""
        self.run = 0
        self._count_request(failed=False)

    def _count_request(self, *, failed: bool) -> tuple[int, int]:
        """Notes one more; how many have failed of how many of late."""
        self._recent.append((self.now, failed))
        self._failures += failed
        while self._recent[0][0] <= self.now - WITHIN:
            self._failures -= self._recent.popleft()[1]
        return self._failures, len(self._recent)

    def note_read(self, target: str, *, failed: bool, what: str = "") -> None:
        """The server has answered to a GET of ``target``.

        That it fails at the same one again and again, and at nothing else in between, says something of what is read
        there, as an object that cannot be decoded any more. Who is asked for it in each round would never count as well.
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
    """A transport that notes the failures of the server or of the way to it; also of a watch in its middle."""

    def __init__(self, transport: Transport, health: ApiHealth) -> None:
        self._transport = transport
        self._health = health

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """``Transport.request``. Who gives up waiting for an answer after ``PATIENCE`` counts as one who got none."""
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
    """Whether the server has failed. A webhook that cannot be called, as its backend was on a lost node, is another program."""
    if answer.status < 500:
        return False
    return not (isinstance(answer.body, bytes) and api_errors.response_error(answer).is_by_webhook)


class _HealthTrackingChunks:
    """Chunks of which it is noted that they broke off."""

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
