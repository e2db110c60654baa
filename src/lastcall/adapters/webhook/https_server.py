"""An HTTPS server for AdmissionReviews: HTTP/1.1 with kept connections, and limits on size, time and number.

kube-apiserver keeps its connections to a webhook, and takes HTTP/1.1 where the server offers no HTTP/2.
"""

import asyncio
import logging
import ssl

from lastcall.adapters.webhook.http_exchange import WebhookReply, WebhookRequest
from lastcall.adapters.webhook.webhook_connection import (
    PIECE,
    Handler,
    RunningAnswer,
    WebhookConnection,
    WebhookLimits,
)

MOST_CONNECTIONS = 512
"""Each answers one request at a time, so that this bounds the work too.

Beyond them a new connection takes the place of the oldest one without a handshake, then of the one that has been idle for
longest, and where all have begun a request, of the oldest of these: whoever opens many connections does not keep the API
server out, whose client opens another one when an idle one is closed.
"""

log = logging.getLogger(__name__)


class WebhookServer:
    """Answers POST requests by ``handler``; an exception of it is answered 500 and logged.

    ``context`` may load another certificate at any time: new connections get it.
    """

    def __init__(self, handler: Handler, context: ssl.SSLContext, limits: WebhookLimits | None = None) -> None:
        self._handler = handler
        self.context = context
        """Of new connections."""
        self.room = memoryview(bytearray(PIECE))
        """What one connection after the other is read into."""
        self._limits = limits or WebhookLimits()
        self._connections: set[WebhookConnection] = set()
        self._server: asyncio.Server | None = None
        self._all_closed = asyncio.Event()
        self.is_draining = False
        """Whether it is about to end, so that no client should begin to use it."""
        self._closes_connections = False

    async def start(self, host: str, port: int) -> int:
        """Listens, and returns the port (0 selects a free one). Raises OSError if it is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: WebhookConnection(self), host, port, backlog=1024)
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

    def admit(self, connection: WebhookConnection) -> bool:
        """Counts a new connection; False if all others are being answered, and there are too many."""
        if len(self._connections) >= MOST_CONNECTIONS:
            unanswered = [one for one in self._connections if not one.is_answering]
            if not unanswered:
                return False
            oldest = min(unanswered, key=lambda one: (one.use, one.last_active))
            self._connections.discard(oldest)
            oldest.abort()
        self._connections.add(connection)
        return True

    def forget(self, connection: WebhookConnection) -> None:
        """It is closed."""
        self._connections.discard(connection)
        if not self._connections:
            self._all_closed.set()

    def begin(self, request: WebhookRequest) -> WebhookReply | RunningAnswer:
        """The answer of the handler, or what is waited for."""
        try:
            return self._handler(request)
        except Exception as error:
            return self.describe_bug(request, error)

    def describe_bug(self, request: WebhookRequest, error: BaseException) -> WebhookReply:
        """The answer where the handler has raised this."""
        log.error("a request to %s could not be answered", request.path, exc_info=error)
        return WebhookReply(500, b"internal error\n")
