"""When requests to an API server last failed: who acts on what he sees there has to know."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from lastcall.adapters.kube.transport import Answer, Chunks, Transport
from lastcall.errors import Unavailable
from lastcall.ports import Clock


class Health:
    """When the API server, or the way to it, last failed; for all who ask it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.failed: float | None = None
        """On the clock's boottime; None if it never has."""

    def note(self) -> None:
        """It has failed now."""
        self.failed = self._clock.boottime()


class Noting:
    """A transport that notes each failure of the server or of the way to it; also of a watch in its middle."""

    def __init__(self, transport: Transport, health: Health) -> None:
        self._transport = transport
        self._health = health

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> Answer:
        """``Transport.request``. Who gives up waiting for an answer counts as one who got none."""
        try:
            answer = await self._transport.request(method, target, headers, body, stream=stream)
        except (Unavailable, asyncio.CancelledError):
            self._health.note()
            raise
        if answer.status >= 500:
            self._health.note()
        return answer if isinstance(answer.body, bytes) else replace(answer, body=_Noted(answer.body, self._health))

    def close(self) -> None:
        """``Transport.close``."""
        self._transport.close()


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
