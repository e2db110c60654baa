"""The API server's HTTPS listener on a loopback address, by uvicorn; ``ApiServer.handle`` handles the requests."""

import asyncio
import contextlib
import logging
import socket
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Protocol

import uvicorn

from lastcall.aio import Signal, wait_first
from lastcall.errors import InvalidInput
from lastcall_lab.apiserver.authentication.authenticator import ANONYMOUS
from lastcall_lab.apiserver.encoding.request_bodies import LIMIT
from lastcall_lab.apiserver.server.client_connection import IDLE_SECONDS, ClientConnection
from lastcall_lab.apiserver.values.asgi import Receive, Scope, Send
from lastcall_lab.apiserver.values.request import Request, Response, parse_query

log = logging.getLogger(__name__)

_TLS_BUFFER = 32 * 1024
"""The buffer of asyncio for a TLS connection: two records. Its default of 256 KiB makes 500 watches 128 MiB."""

_PIECE = 16 * 1024
"""Bytes of a long list that are encoded and sent at once."""

_LARGEST_MESSAGE = 1024 * 1024
"""Maximum bytes of a WebSocket message; kubectl sends 32 KiB."""


class RequestHandler(Protocol):
    """Handles requests."""

    async def handle(self, request: Request) -> Response:
        """Never raises."""
        ...


Upgrade = Callable[[Request, Scope, Receive, Send], Awaitable[None]]
"""Serves a WebSocket: ``exec`` and ``attach``."""


class HttpServer:
    """Listens from ``listen`` on and responds in ``serve``; ``url`` is its address.

    ``certificate`` and ``key`` are PEM files; without them it speaks plain HTTP, for debugging.
    """

    def __init__(
        self, handler: RequestHandler, upgrade: Upgrade, *, certificate: Path | None = None, key: Path | None = None
    ) -> None:
        self._handler = handler
        self._upgrade = upgrade
        self._certificate = certificate
        self._key = key
        self._closing = Signal()
        self._server: _Server | None = None
        self._listener: socket.socket | None = None
        self.url = ""

    def listen(self, host: str, port: int) -> int:
        """Starts to accept connections; returns the port. Port 0 selects a free one.

        InvalidInput if the port is not available.
        """
        SSLProtocol.max_size = _TLS_BUFFER
        self._listener = _listener(host, port)
        secure = self._certificate is not None
        port = self._listener.getsockname()[1]
        self.url = f"{'https' if secure else 'http'}://{host}:{port}"
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            http=ClientConnection,
            ws="websockets-sansio",
            ws_max_size=_LARGEST_MESSAGE,
            ws_per_message_deflate=False,  # a real server does not do this either; small messages would grow
            timeout_keep_alive=IDLE_SECONDS,
            lifespan="off",
            log_config=None,
            log_level=logging.CRITICAL,  # ``_app`` reports errors
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ssl_certfile=self._certificate,
            ssl_keyfile=self._key,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        return port

    async def serve(self) -> None:
        """Responds until ``stop`` is called."""
        assert self._listener
        assert self._server
        try:
            await self._server.serve(sockets=[self._listener])
        finally:
            self._closing.set()
            self._listener.close()

    def stop(self) -> None:
        """Makes ``serve`` return soon: ends streams and finishes requests in progress."""
        self._closing.set()
        if self._server:
            self._server.should_exit = True

    # -- ASGI ----------------------------------------------------------------------------------------------------------

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] == "websocket":
                await self._upgrade(_request(scope, b""), scope, receive, send)
            elif scope["type"] == "http":
                await self._http(scope, receive, send)
        except OSError:  # the client has disconnected: there is no one to respond to
            log.debug("the client of %s disconnected", scope["path"])
        except Exception:
            log.exception("the response to %s failed", scope["path"])
            raise

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        if body is None:
            return
        request = _request(scope, body)
        response = await self._handler.handle(request)
        if len(body) > LIMIT:
            response.headers["connection"] = "close"  # the rest is not read
        await send({"type": "http.response.start", "status": response.status, "headers": _headers(response)})
        if isinstance(response.body, bytes):
            await send({"type": "http.response.body", "body": response.body})
        elif isinstance(response.body, Iterator):
            await wait_first(_send_pieces(response.body, send), _wait_for_disconnect(receive))
        else:
            await self._stream(response.body, receive, send)

    async def _stream(self, chunks: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
        """Runs until the stream ends, the client disconnects, or the server closes."""

        async def pump() -> None:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})

        async def closing() -> None:
            await self._closing.next()

        try:
            await wait_first(pump(), _wait_for_disconnect(receive), closing())
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]
            with contextlib.suppress(OSError):
                await send({"type": "http.response.body", "body": b""})


class _Server(uvicorn.Server):
    """Leaves signal handling to the program that embeds it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listener(host: str, port: int) -> socket.socket:
    # With an explicit protocol asyncio sets TCP_NODELAY: otherwise each response would wait 40 ms for an ACK.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise InvalidInput(f"{host}:{port}", [f"cannot listen: {error.strerror}"]) from None
    return listener


def _request(scope: Scope, body: bytes) -> Request:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    query = parse_query(scope["query_string"].decode("latin-1"))
    return Request(scope.get("method", "GET"), scope["path"], query, headers, body, ANONYMOUS)


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or more than the limit; None if the client has disconnected."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LIMIT or not message.get("more_body"):  # anything above the limit suffices for a rejection
            return b"".join(parts)


async def _send_pieces(pieces: Iterator[bytes], send: Send) -> None:
    """Sends a body in pieces, so that other clients are served in between."""
    ready: list[bytes] = []
    for piece in pieces:
        ready.append(piece)
        if sum(map(len, ready)) >= _PIECE:
            await send({"type": "http.response.body", "body": b"".join(ready), "more_body": True})
            await asyncio.sleep(0)
            ready = []
    await send({"type": "http.response.body", "body": b"".join(ready)})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _headers(response: Response) -> list[tuple[bytes, bytes]]:
    return [
        (name.encode("latin-1"), one.encode("latin-1"))
        for name, value in response.headers.items()
        for one in ([value] if isinstance(value, str) else value)
    ]
