"""HTTPS to one server: connection pools, credentials, limits on time and size."""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable, Mapping, Sequence

from lastcall.adapters.kube import tls
from lastcall.adapters.kube.connection_pool import ConnectionPool
from lastcall.adapters.kube.credentials import Credential, CredentialSource
from lastcall.adapters.kube.endpoint import ServerEndpoint, TransportLimits
from lastcall.adapters.kube.http_connection import HttpConnection
from lastcall.adapters.kube.transport import ApiResponse
from lastcall.aio import timeout
from lastcall.errors import InvalidInput, LastcallError, Unavailable

__all__ = ["HttpsTransport", "ServerEndpoint", "TransportLimits"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class HttpsTransport:
    """``transport.Transport`` over the network.

    ``urgent`` is another transport to the same server as the same user. Its requests have connections of their own, so
    that they wait neither for other requests, nor for a server that is slow to answer those.
    """

    def __init__(
        self, endpoint: ServerEndpoint, credentials: CredentialSource, *, limits: TransportLimits | None = None
    ) -> None:
        self._endpoint = endpoint
        self._credentials = credentials
        self._limits = limits or TransportLimits()
        self._bulk = ConnectionPool(endpoint, turns=self._limits.connections, connect=self._limits.connect)
        self._reserved = ConnectionPool(endpoint, turns=self._limits.urgent, connect=self._limits.connect)
        self.urgent = _UrgentTransport(self, self._reserved)
        self._shown: tuple[str, str] | None = None
        self._context: ssl.SSLContext | None = None

    async def prepare(self) -> None:
        """Reads the credential and makes the TLS context of it, so that a first request need not; that one reports errors."""
        with contextlib.suppress(LastcallError):
            self._use_certificate(await self._credentials.current_credential())

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """Sends a request. A 401 is retried once if another credential is available."""
        return await self.request_through(self._bulk, method, target, headers, body, stream=stream)

    async def request_through(
        self, pool: ConnectionPool, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool
    ) -> ApiResponse:
        """As ``request``, on the connections of one class."""
        credential = await self._credentials.current_credential()
        answer = await self._request_once(pool, credential, method, target, headers, body, stream)
        if answer.status == 401 and self._credentials.mark_refused(credential):
            credential = await self._credentials.current_credential()
            answer = await self._request_once(pool, credential, method, target, headers, body, stream)
        return answer

    def close(self) -> None:
        """Closes all connections, streaming and urgent ones too."""
        self._bulk.close()
        self._reserved.close()

    async def _request_once(
        self,
        pool: ConnectionPool,
        credential: Credential,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        stream: bool,
    ) -> ApiResponse:
        self._use_certificate(credential)
        data = self._encode_request(method, target, [*headers.items(), *_authorization_headers(credential)], body)
        if stream:
            return await self._exchange_request(pool, method, data, stream=True)
        async with pool.turns:
            return await self._exchange_request(pool, method, data, stream=False)

    async def _exchange_request(self, pool: ConnectionPool, method: str, data: bytes, *, stream: bool) -> ApiResponse:
        connection = await self._send_until_head(pool, method, data)
        kept = False
        try:
            if stream and connection.status < 300:
                kept = True
                return ApiResponse(connection.status, connection.headers, _BodyStream(connection, pool.release))
            return ApiResponse(connection.status, connection.headers, await self._read_body(connection))
        finally:
            if not kept:
                pool.release(connection)

    async def _send_until_head(self, pool: ConnectionPool, method: str, data: bytes) -> HttpConnection:
        """Sends the request and returns the connection on which the answer's head has arrived.

        The peer may have closed an idle connection just before; then a request that changes nothing is sent again.
        """
        while True:
            connection, fresh = await pool.acquire(self._context)
            try:
                connection.send(data, bodiless=method == "HEAD")
                await connection.wait_for_head(self._limits.answer)
                return connection
            except BaseException as error:
                again = not fresh and method in ("GET", "HEAD") and connection.is_unanswered
                pool.give_up(connection)
                if connection.is_unanswered and not isinstance(error, Unavailable):
                    pool.discard_idle()  # the peer may be gone silently, and then the idle connections are dead too
                if isinstance(error, TimeoutError):
                    raise Unavailable(f"{self._endpoint.netloc} gave no answer in {self._limits.answer:g} s") from None
                if not (isinstance(error, Unavailable) and again):
                    raise

    async def _read_body(self, connection: HttpConnection) -> bytes:
        if (small := connection.take_buffered_body(self._limits.body)) is not None:
            return small
        parts, size = [], 0
        async with contextlib.aclosing(connection.body_chunks()) as chunks:
            try:
                async with timeout(self._limits.inactivity) as patience:
                    async for chunk in chunks:
                        parts.append(chunk)
                        size += len(chunk)
                        if size > self._limits.body:
                            raise Unavailable(f"{self._endpoint.netloc} sent more than {self._limits.body} bytes")
                        patience.reschedule(asyncio.get_running_loop().time() + self._limits.inactivity)
            except TimeoutError:
                raise Unavailable(
                    f"{self._endpoint.netloc} stopped in the middle of an answer for {self._limits.inactivity:g} s"
                ) from None
        return b"".join(parts)

    def _use_certificate(self, credential: Credential) -> None:
        """New connections use this certificate; those that showed another one are not reused."""
        shown = (credential.certificate, credential.key)
        if not self._endpoint.secure or shown == self._shown:
            return
        endpoint = self._endpoint
        try:
            self._context = tls.client_context(
                endpoint.authority, insecure=endpoint.insecure, certificate=shown[0], key=shown[1]
            )
        except InvalidInput:
            self._credentials.mark_refused(credential)  # read while files were replaced: the next request reads again
            raise
        self._shown = shown
        self._bulk.discard_idle()
        self._reserved.discard_idle()

    def _encode_request(self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
        lines = [f"{method} {self._endpoint.prefix}{target} HTTP/1.1", f"host: {self._endpoint.netloc}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body or method not in ("GET", "HEAD", "DELETE"):
            lines.append(f"content-length: {len(body)}")
        if _CONTROL.search("".join(lines)) or " " in target:
            raise InvalidInput("the request", [f"{method} {target!r}: blanks or control characters in path or headers"])
        return "\r\n".join([*lines, "", ""]).encode() + body


class _UrgentTransport:
    """``transport.Transport`` for urgent requests; its parent closes it."""

    def __init__(self, http: HttpsTransport, pool: ConnectionPool) -> None:
        self._http = http
        self._pool = pool

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """One answer."""
        return await self._http.request_through(self._pool, method, target, headers, body, stream=stream)

    def close(self) -> None:
        """Closes its own connections; the others stay."""
        self._pool.close()


class _BodyStream:
    """``transport.Chunks`` of one connection."""

    def __init__(self, connection: HttpConnection, release: Callable[[HttpConnection], None]) -> None:
        self._connection = connection
        self._chunks = connection.body_chunks()
        self._release = release

    def __aiter__(self) -> "_BodyStream":
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except BaseException:
            self._release(self._connection)
            raise

    async def aclose(self) -> None:
        """Returns the connection to the pool if all was read; else closes it."""
        await self._chunks.aclose()
        self._release(self._connection)


def _authorization_headers(credential: Credential) -> Sequence[tuple[str, str]]:
    bearer = [("authorization", f"Bearer {credential.token}")] if credential.token else []
    return [*bearer, *credential.headers]
