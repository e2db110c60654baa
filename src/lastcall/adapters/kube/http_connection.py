"""One HTTP/1.1 connection: one request at a time; the answer is available as it arrives."""

import asyncio
from collections.abc import AsyncGenerator

import httptools

from lastcall.errors import Unavailable

_HIGH = 256 * 1024
"""Unread bytes at which reading from the peer pauses; it resumes when they are read."""

_MAX_HEAD = 64 * 1024


class HttpConnection(asyncio.Protocol):
    """Parses incoming bytes and wakes the reader. All failures reach the reader as Unavailable."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._failure: Unavailable | None = None
        self._waiting: asyncio.Future[None] | None = None
        self.bodiless = False
        self._reset_response()

    def _reset_response(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._head_size = 0
        self._chunks: list[bytes] = []
        self._buffered = 0
        self._head_done = self._done = self._keep = self._expired = False

    # -- for the pool --------------------------------------------------------------------------------------------------

    @property
    def is_reusable(self) -> bool:
        """Whether another request can be sent: the last answer was read to its end, and the connection is open."""
        idle = self._parser is None or (self._done and self._keep and not self._chunks)
        return idle and self._failure is None and self._transport is not None and not self._transport.is_closing()

    @property
    def is_unanswered(self) -> bool:
        """Whether no byte of the answer has arrived yet."""
        return not self._head_size and not self.status

    def send(self, data: bytes, *, bodiless: bool) -> None:
        """Sends one whole request; ``bodiless`` if its answer has no body whatever its head says (HEAD)."""
        self._reset_response()
        self._parser = httptools.HttpResponseParser(self)
        self.bodiless = bodiless
        if self._transport is not None:
            self._transport.write(data)

    async def wait_for_head(self, seconds: float) -> None:
        """Waits until ``status`` and ``headers`` are set. TimeoutError if that takes longer.

        A timer of the event loop costs a third of a ``timeout`` around each request.
        """
        limit = asyncio.get_running_loop().call_later(seconds, self._expire)
        try:
            while not self._head_done:
                if self._expired:
                    raise TimeoutError
                await self._wait_for_data()
        finally:
            limit.cancel()

    async def body_chunks(self) -> AsyncGenerator[bytes, None]:
        """Yields the body as it arrives: all that has arrived at a time, however the peer divided it."""
        while True:
            if self._chunks:
                chunk = self._take_chunks()
                if self._transport is not None:
                    self._transport.resume_reading()
                yield chunk
            elif self._done:
                return
            else:
                await self._wait_for_data()

    def take_buffered_body(self, limit: int) -> bytes | None:
        """The whole body if it came with the head, as most do, and has at most ``limit`` bytes; else None."""
        return None if not self._done or self._buffered > min(limit, _HIGH) else self._take_chunks()

    def abort(self) -> None:
        """Ends the connection at once; a waiting reader gets Unavailable."""
        self._record_failure("the connection was given up")
        if self._transport is not None:
            self._transport.abort()

    async def _wait_for_data(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _take_chunks(self) -> bytes:
        taken = b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = 0
        return taken

    def _expire(self) -> None:
        self._expired = True
        self._wake_reader()

    # -- asyncio.Protocol ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The peer is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Bytes of the answer."""
        if self._parser is None or (self._done and data):
            self.abort()
            return
        if not self._head_done:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._record_failure(f"{self._peer} does not speak HTTP: {error}")
            self.abort()
        if not self._head_done and self._head_size > _MAX_HEAD:
            self._record_failure(f"{self._peer} sent headers of more than {_MAX_HEAD} bytes")
            self.abort()
        if self._buffered > _HIGH and self._transport is not None:
            self._transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> bool:
        """The peer has closed its side."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed; an answer that ends with the connection is complete now."""
        unknown_length = "content-length" not in self.headers and "transfer-encoding" not in self.headers
        if self._head_done and unknown_length and exc is None and self._failure is None:
            self._done = True
        self._keep = False
        self._transport = (
            None  # it holds 256 KiB, and this object, which its parser refers to, waits for a garbage collection
        )
        self._record_failure(f"{self._peer} closed the connection" + (f": {exc}" if exc else ""))
        self._wake_reader()

    # -- httptools -----------------------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        """The head is whole; an interim answer (1xx) is passed over."""
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            self.headers = {}
            return
        self.status, self._keep = status, self._parser.should_keep_alive()
        self._head_done = True
        if self.bodiless:
            self._done = True

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._chunks.append(body)
        self._buffered += len(body)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        self._done = self._head_done

    # -- within --------------------------------------------------------------------------------------------------------

    def _record_failure(self, why: str) -> None:
        if self._failure is None:
            self._failure = Unavailable(why)

    def _wake_reader(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
