"""When requests to an API server last failed: who acts on what he sees there has to know."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from lastcall.adapters.kube import failures
from lastcall.adapters.kube.transport import Answer, Chunks, Transport
from lastcall.errors import Unavailable
from lastcall.ports import Clock

PATIENCE = 2.0
"""Seconds after which it tells of the server that an answer is not waited for any longer.

Before, it need not be wanted any more: who looks at a node while a fence switches it off stops with the order. Leases are
waited for longer than that, but at their very end.
"""


class Health:
    """When the API server, or the way to it, last failed; for all who ask it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.failed: float | None = None
        """On the clock's boottime; None if it never has."""
        self._alone = ""

    def note(self) -> None:
        """It has failed now."""
        self.failed = self.now
        self._alone = ""

    def note_read(self, target: str, *, failed: bool) -> None:
        """The server has answered to a GET of ``target``.

        That it fails at the same one again and again, and at nothing else in between, says something of what is read
        there, as an object that cannot be decoded any more. Who is asked for it in each round would never count as well.
        """
        if failed and target != self._alone:
            self.note()
            self._alone = target
        elif not failed and target == self._alone:
            self._alone = ""

    @property
    def now(self) -> float:
        """On the clock's boottime."""
        return self._clock.boottime()


class Noting:
    """A transport that notes the failures of the server or of the way to it; also of a watch in its middle."""

    def __init__(self, transport: Transport, health: Health) -> None:
        self._transport = transport
        self._health = health

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> Answer:
        """``Transport.request``. Who gives up waiting for an answer after ``PATIENCE`` counts as one who got none."""
        asked = self._health.now
        try:
            answer = await self._transport.request(method, target, headers, body, stream=stream)
        except Unavailable:
            self._health.note()
            raise
        except asyncio.CancelledError:
            if self._health.now >= asked + PATIENCE:
                self._health.note()
            raise
        failed = _failed(answer)
        if method == "GET" and not stream:
            self._health.note_read(target, failed=failed)
        elif failed:
            self._health.note()
        return answer if isinstance(answer.body, bytes) else replace(answer, body=_Noted(answer.body, self._health))

    def close(self) -> None:
        """``Transport.close``."""
        self._transport.close()


def _failed(answer: Answer) -> bool:
    """Whether the server has failed. A webhook that cannot be called, as its backend was on a lost node, is another program."""
    if answer.status < 500:
        return False
    return not (isinstance(answer.body, bytes) and failures.failure(answer).by_webhook)


class _Noted:
    """Chunks of which it is noted that they broke off."""

    def __init__(self, chunks: Chunks, health: Health) -> None:
        self._chunks = chunks
        self._health = health

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except Unavailable:
            self._health.note()
            raise

    async def aclose(self) -> None:
        await self._chunks.aclose()
