"""A line to the API server whose watches are late."""

import asyncio

from lastcall.adapters.kube.transport import ApiResponse


class HeldWatches:
    """A transport whose watches bring nothing while they are ``held``: all, or those with ``of`` in what they ask for."""

    def __init__(self, transport, of=""):
        self.transport, self.held = transport, False
        self._of = of

    async def request(self, method, target, *arguments, **options):
        answer = await self.transport.request(method, target, *arguments, **options)
        if not isinstance(answer.body, bytes) and self._of in target:
            return ApiResponse(answer.status, answer.headers, HeldPieces(answer.body, self))
        return answer

    def close(self):
        self.transport.close()


class HeldPieces:
    def __init__(self, chunks, watches):
        self._chunks, self._watches = chunks, watches

    def __aiter__(self):
        return self

    async def __anext__(self):
        chunk = await anext(self._chunks)
        while self._watches.held:
            await asyncio.sleep(0.5)
        return chunk

    async def aclose(self):
        await self._chunks.aclose()
