"""An HTTPS server for AdmissionReviews: HTTP/1.1 with kept connections, and limits on size, time and number.

kube-apiserver keeps its connections to a webhook, and takes HTTP/1.1 where the server offers no HTTP/2.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lastcall.adapters.webhook.http_exchange import HttpExchange, WebhookReply, WebhookRequest

MOST_CONNECTIONS = 512
"""Each answers one request at a time, so that this bounds the work too.

Beyond them a new connection takes the place of the one that has been idle for longest, and where all have begun a
request, of the oldest of these: whoever opens many connections does not keep the API server out, whose client opens
another one when an idle one is closed.
"""

log = logging.getLogger(__name__)

Handler = Callable[[WebhookRequest], Awaitable[WebhookReply]]


@dataclass(frozen=True, kw_only=True)
class WebhookLimits:
    """Sizes in bytes, times in seconds."""

    head: int = 16 * 1024
    body: int = 16 * 2**20
    """An AdmissionReview holds an object twice at most, and the API server's objects have 3 MiB at most."""
    receive: float = 10.0
    """From the first byte of a request to its last."""
    idle: float = 300.0
    """Go's client closes idle connections after 90 s: the server must not be the first, or a request is lost."""


class WebhookServer:
    """Answers POST requests by ``handler``; an exception of it is answered 500 and logged.

    ``context`` may load another certificate at any time: new connections get it.
    """

    def __init__(self, handler: Handler, context: ssl.SSLContext | None, limits: WebhookLimits | None = None) -> None:
        self._handler = handler
        self._context = context
        self._limits = limits or WebhookLimits()
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._all_closed = asyncio.Event()
        self.is_draining = False
        """Whether it is about to end, so that no client should begin to use it."""
        self._closes_connections = False

    async def start(self, host: str, port: int) -> int:
        """Listens, and returns the port (0 selects a free one). Raises OSError if it is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), host, port, ssl=self._context, backlog=1024)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def drain(self, seconds: float) -> None:
        """Ends without losing a request: answers for ``seconds`` more, in whose second half answers close connections.

        By then the readiness probe must have failed for so long that new connections reach other replicas: a client whose
        connection is closed before would come back. Connections that have had no request are closed afterwards.
        """
        self.is_draining = True
        await asyncio.sleep(seconds / 2)
        self._closes_connections = True
        await asyncio.sleep(seconds / 2)
        if self._server:
            self._server.close()
        for connection in list(self._connections):
            connection.close_when_idle()
        while self._connections:
            self._all_closed.clear()
            await self._all_closed.wait()

    def close(self) -> None:
        """Ends now: requests under way are not answered."""
        if self._server:
            self._server.close()
        for connection in list(self._connections):
            connection.abort()

    # -- for its connections -------------------------------------------------------------------------------------------

    @property
    def limits(self) -> WebhookLimits:
        """The limits of each connection."""
        return self._limits

    @property
    def closes_connections(self) -> bool:
        """Whether each connection ends with its next answer."""
        return self._closes_connections

    def admit(self, connection: "_Connection") -> bool:
        """Counts a new connection; False if all others are being answered, and there are too many."""
        if len(self._connections) >= MOST_CONNECTIONS:
            unanswered = [one for one in self._connections if not one.is_answering]
            if not unanswered:
                return False
            oldest = min(unanswered, key=lambda one: (one.is_receiving, one.last_active))
            self._connections.discard(oldest)
            oldest.abort()
        self._connections.add(connection)
        return True

    def forget(self, connection: "_Connection") -> None:
        """It is closed."""
        self._connections.discard(connection)
        if not self._connections:
            self._all_closed.set()

    async def handle(self, request: WebhookRequest) -> WebhookReply:
        """The answer of the handler."""
        try:
            return await self._handler(request)
        except Exception:
            log.exception("a request to %s could not be answered", request.path)
            return WebhookReply(500, b"internal error\n")


class _Connection(asyncio.Protocol):
    """One client. Requests are answered one after the other; while one is answered, one more piece is read at most."""

    def __init__(self, server: WebhookServer) -> None:
        self._server = server
        self._exchange = HttpExchange(server.limits.head, server.limits.body)
        self._transport: asyncio.Transport | None = None
        self._answering: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._peer = ""
        self.last_active = asyncio.get_running_loop().time()
        """When it was opened, or a request was last answered."""

    @property
    def is_answering(self) -> bool:
        """Whether a request is being answered."""
        return self._answering is not None

    @property
    def is_receiving(self) -> bool:
        """Whether a request has begun and is not whole."""
        return self._exchange.is_receiving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._server.admit(self):
            transport.abort()
            return
        self._peer = _peer_name(transport)
        self._set_deadline(self._server.limits.idle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.forget(self)
        self._cancel_timer()
        if self._answering:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        if self._answering:
            if self._transport:
                self._transport.pause_reading()
        elif not self._exchange.is_receiving:
            self._set_deadline(self._server.limits.receive)
        self._exchange.feed(data)
        self._answer_next()

    def close_when_idle(self) -> None:
        """Closes it, after the answer to a request that has begun."""
        if self._answering is None and not self._exchange.is_receiving and self._transport:
            self._transport.close()

    def abort(self) -> None:
        """Closes it now."""
        if self._transport:
            self._transport.abort()

    def _answer_next(self) -> None:
        if self._answering or not self._transport:
            return
        if request := self._exchange.take_request():
            self._deadline = None
            self._answering = asyncio.get_running_loop().create_task(self._answer(request))
        elif refusal := self._exchange.refusal:
            self._transport.write(refusal.encode(close=True))
            self._transport.close()

    async def _answer(self, request: WebhookRequest) -> None:
        reply = await self._server.handle(request.from_peer(self._peer))
        self._answering = None
        self.last_active = asyncio.get_running_loop().time()
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        last = self._server.closes_connections or not request.keeps_alive
        transport.write(reply.encode(close=last))
        if last:
            transport.close()
            return
        limits = self._server.limits
        self._set_deadline(limits.receive if self._exchange.is_receiving else limits.idle)
        with contextlib.suppress(RuntimeError):  # the transport has been closed meanwhile
            transport.resume_reading()
        self._answer_next()

    def _set_deadline(self, seconds: float) -> None:
        """Closes it after so many seconds. A timer that is due before stays, since nearly all deadlines are replaced."""
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + seconds
        if self._timer is None or self._timer.when() > self._deadline:
            self._cancel_timer()
            self._timer = loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline is None:  # while a request is answered there is none
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._deadline:
            self.abort()
        else:
            self._timer = loop.call_at(self._deadline, self._check_deadline)

    def _cancel_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


def _peer_name(transport: asyncio.Transport) -> str:
    """The common name of the client's certificate; "" without a verified one."""
    certificate = transport.get_extra_info("peercert") or {}
    subject = certificate.get("subject", ())
    return next((value for part in subject for name, value in part if name == "commonName"), "")
