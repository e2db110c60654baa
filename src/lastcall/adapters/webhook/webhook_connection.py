"""One connection of the webhook's server: TLS, requests and their answers, and the times that limit them."""

import asyncio
import functools
import logging
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from lastcall.adapters.webhook.http_exchange import HttpExchange, WebhookReply, WebhookRequest
from lastcall.adapters.webhook.tls_channel import TlsChannel

log = logging.getLogger(__name__)

RunningAnswer = Coroutine[Any, Any, WebhookReply]

Handler = Callable[[WebhookRequest], WebhookReply | RunningAnswer]
"""An answer that waits for nothing is returned, and needs no task."""

PIECE = 64 * 1024
"""Bytes that are read at a time."""


@dataclass(frozen=True, kw_only=True)
class WebhookLimits:
    """Sizes in bytes, times in seconds."""

    head: int = 16 * 1024
    body: int = 16 * 2**20
    """An AdmissionReview holds an object twice at most, and the API server's objects have 3 MiB at most."""
    handshake: float = 10.0
    receive: float = 10.0
    """From the first byte of a request to its last."""
    idle: float = 300.0
    """Go's client closes idle connections after 90 s: the server must not be the first, or a request is lost."""
    end: float = 1.0
    """Until a connection that has ended is closed though the client has not closed it."""


class ConnectionServer(Protocol):
    """What a connection needs of its server."""

    @property
    def context(self) -> ssl.SSLContext:
        """Of new connections."""
        ...

    @property
    def room(self) -> memoryview:
        """What one connection after the other is read into; ``PIECE`` bytes."""
        ...

    @property
    def limits(self) -> WebhookLimits:
        """The limits of each connection."""
        ...

    @property
    def closes_connections(self) -> bool:
        """Whether each connection ends with its next answer."""
        ...

    def admit(self, connection: "WebhookConnection") -> bool:
        """Counts a new connection; False if there are too many."""
        ...

    def forget(self, connection: "WebhookConnection") -> None:
        """It is closed."""
        ...

    def begin(self, request: WebhookRequest) -> WebhookReply | RunningAnswer:
        """The answer, or what is waited for."""
        ...

    def describe_bug(self, request: WebhookRequest, error: BaseException) -> WebhookReply:
        """The answer where the handler has raised this."""
        ...


class WebhookConnection(asyncio.BufferedProtocol):
    """One client. Requests are answered one after the other; while one is answered, one more piece is read at most."""

    def __init__(self, server: ConnectionServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._channel = TlsChannel(server.context)
        self._exchange = HttpExchange(server.limits.head, server.limits.body)
        self._transport: asyncio.Transport | None = None
        self._answering: asyncio.Task[WebhookReply] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._is_over = False
        self._is_full = False
        self.last_active = self._loop.time()
        """When it was opened, or a request was last answered."""

    @property
    def is_answering(self) -> bool:
        """Whether a request is being answered."""
        return self._answering is not None

    @property
    def use(self) -> int:
        """0 before the handshake and at the end, 1 for an idle connection, 2 if a request has begun."""
        if self._is_over or not self._channel.is_open:
            return 0
        return 2 if self._exchange.is_receiving else 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client is connected; its handshake follows."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._server.admit(self):
            transport.abort()
            return
        self._set_deadline(self._server.limits.handshake)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed: who is still answered hears nothing."""
        self._transport = None
        self._server.forget(self)
        self._cancel_timer()
        if self._answering:
            self._answering.cancel()

    def get_buffer(self, sizehint: int) -> memoryview:
        """The server's one piece of memory: what is in it is used before the next read."""
        return self._server.room

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes have come."""
        if self._is_over or not self._transport:
            return
        was_open = self._channel.is_open
        try:
            data = self._channel.decrypt(self._server.room[:nbytes])
        except ssl.SSLError as error:
            log.debug("a client is refused: %s", error)
            self._end(self._channel.take_output())
            return
        if output := self._channel.take_output():
            self._transport.write(output)
        if self._channel.is_open and not was_open:
            self._set_deadline(self._server.limits.idle)
        if data:
            self._take(data)
        if self._channel.is_ended and self._transport:
            self._transport.close()

    def pause_writing(self) -> None:
        """A client that takes no answers is not read on."""
        self._is_full = True
        if self._transport:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It takes them again."""
        self._is_full = False
        if self._answering is None:
            self._resume_reading()

    def close_when_idle(self) -> None:
        """Closes it, after the answer to a request that has begun."""
        if self._answering is None and self.use < 2:
            self._end(b"")

    def abort(self) -> None:
        """Closes it now."""
        if self._transport:
            self._transport.abort()

    # -- requests ------------------------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        begins = not self._exchange.is_receiving
        self._exchange.feed(data)
        if self._answering:
            if self._transport:
                self._transport.pause_reading()
        elif begins and self._exchange.is_receiving:
            self._set_deadline(self._server.limits.receive)
        self._answer_next()

    def _answer_next(self) -> None:
        while self._transport and not self._answering and not self._is_over:
            if request := self._exchange.take_request():
                self._begin_answer(request.from_peer(self._channel.peer))
                continue
            if refusal := self._exchange.refusal:
                self._end(self._channel.encrypt(refusal.encode(close=True)))
            return

    def _begin_answer(self, request: WebhookRequest) -> None:
        answer = self._server.begin(request)
        if isinstance(answer, WebhookReply):
            self._send(request, answer)
            return
        self._deadline = None
        self._answering = self._loop.create_task(answer)
        self._answering.add_done_callback(functools.partial(self._finish_answer, request))

    def _finish_answer(self, request: WebhookRequest, answering: "asyncio.Task[WebhookReply]") -> None:
        self._answering = None
        if answering.cancelled():  # the client is gone
            return
        error = answering.exception()
        self._send(request, self._server.describe_bug(request, error) if error else answering.result())
        self._resume_reading()
        self._answer_next()

    def _send(self, request: WebhookRequest, reply: WebhookReply) -> None:
        transport, limits = self._transport, self._server.limits
        self.last_active = self._loop.time()
        if transport is None or transport.is_closing():
            return
        last = self._server.closes_connections or not request.keeps_alive
        data = self._channel.encrypt(reply.encode(close=last))
        if last:
            self._end(data)
            return
        transport.write(data)
        self._set_deadline(limits.receive if self._exchange.is_receiving else limits.idle)

    # -- within --------------------------------------------------------------------------------------------------------

    def _resume_reading(self) -> None:
        if self._transport and not self._is_full:
            self._transport.resume_reading()

    def _end(self, data: bytes) -> None:
        """Says this and that nothing follows. The client closes: what it still sends would take the answer away."""
        transport = self._transport
        if transport is None or transport.is_closing() or self._is_over:
            return
        self._is_over = True
        transport.write(data + self._channel.end())
        transport.write_eof()
        self._resume_reading()
        self._set_deadline(self._server.limits.end)

    def _set_deadline(self, seconds: float) -> None:
        """Closes it after so many seconds. A timer that is due before stays, since nearly all deadlines are replaced."""
        self._deadline = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._deadline:
            self._cancel_timer()
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline is None:  # while a request is answered there is none
            return
        if self._loop.time() >= self._deadline:
            self.abort()
        else:
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)

    def _cancel_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
