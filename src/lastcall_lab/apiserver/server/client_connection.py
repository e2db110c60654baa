"""One client connection, with the limits and messages of Go's HTTP server (``net/http/server.go``)."""

import asyncio
import re

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 32.0
"""Seconds for request line and headers (``ReadHeaderTimeout``)."""

BODY_SECONDS = 60.0
"""Seconds for the body; a real server waits for ever."""

IDLE_SECONDS = 90
"""Seconds between two requests (``IdleTimeout``)."""

MAX_HEAD_BYTES = 1024 * 1024
"""Bytes of request line and headers (``DefaultMaxHeaderBytes``)."""

_KNOWN = (b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS")
_METHOD = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LONGEST_METHOD = 64
_STAND_IN = b"POST"
"""The method that the parser gets in place of an unknown one; such a request may have a body."""


class ClientConnection(HttpToolsProtocol):
    """Parses requests; responds like Go to slow clients, excess data and invalid HTTP, and disconnects."""

    _timer: asyncio.TimerHandle | None = None
    _between = True
    """Whether the parser has seen nothing of the next request yet."""
    _first_bytes = b""
    """The beginning of the next request while its method is incomplete."""
    _method = ""
    """The real method, if the parser got the stand-in."""
    _head_bytes: int | None = 0
    """The size of incomplete request line and headers; None after them."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected; starts the timeout of its first request."""
        super().connection_made(transport)
        self._hurry(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        self._hurry(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A part of one or more requests."""
        if self.transport.is_closing():
            return
        if self._between:
            self._first_bytes += data
            self._hurry(HEAD_SECONDS, again=False)
            if self._method_is_cut_off():
                return
            data, self._first_bytes, self._between = self._with_known_method(), b"", False
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes is not None and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")

    def send_400_response(self, msg: str) -> None:
        """The response to invalid HTTP."""
        self._refuse(b"400 Bad Request")

    def handle_websocket_upgrade(self) -> None:
        """Hands the connection to the WebSocket protocol."""
        self._hurry(None)
        super().handle_websocket_upgrade()

    # -- parser callbacks ----------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins, possibly pipelined."""
        self._between, self._head_bytes = False, 0
        self._hurry(HEAD_SECONDS, again=False)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Request line and headers are complete."""
        self._head_bytes = None
        self._hurry(BODY_SECONDS)
        super().on_headers_complete()
        if self._method:
            self.scope["method"] = self._method  # before the request's task has started
            self._method = ""

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._hurry(None)
        self._between, self._head_bytes = True, 0
        super().on_message_complete()

    # -- internal ------------------------------------------------------------------------------------------------------

    def _method_is_cut_off(self) -> bool:
        begun = self._first_bytes.lstrip(b"\r\n")
        return len(self._first_bytes) <= _LONGEST_METHOD and not re.search(rb"[ \r\n]", begun)

    def _with_known_method(self) -> bytes:
        """The bytes so far, with a method that the parser accepts; remembers the real one."""
        begun = self._first_bytes.lstrip(b"\r\n")
        method, space, rest = begun.partition(b" ")
        if not space or method in _KNOWN or not _METHOD.fullmatch(method):
            return begun
        self._method = method.decode("ascii")
        return _STAND_IN + space + rest

    def _hurry(self, seconds: float | None, *, again: bool = True) -> None:
        """Disconnects after that many seconds; None disables the timeout. Without ``again`` a running timer stays."""
        if self._timer is not None:
            if not again:
                return
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._give_up) if seconds is not None else None

    def _give_up(self) -> None:
        self._timer = None
        if self._head_bytes is not None:
            self._refuse(b"400 Bad Request")
        self.transport.abort()

    def _refuse(self, line: bytes) -> None:
        """Responds to an invalid request and closes the connection."""
        if not self.transport.is_closing():
            head = b"Content-Type: text/plain; charset=utf-8\r\nConnection: close"
            self.transport.write(b"HTTP/1.1 %s\r\n%s\r\n\r\n%s" % (line, head, line))
        self.transport.close()
