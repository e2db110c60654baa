"""HTTPS to one server: pools of kept connections, credentials, time and size limits."""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable, Mapping, Sequence

from lastcall.adapters.kube import tls
from lastcall.adapters.kube.connection import Connection
from lastcall.adapters.kube.credentials import Credential, Credentials
from lastcall.adapters.kube.endpoint import Endpoint, Limits
from lastcall.adapters.kube.pool import Pool
from lastcall.adapters.kube.transport import Answer
from lastcall.aio import timeout
from lastcall.errors import InvalidInput, Unavailable

__all__ = ["Endpoint", "Http", "Limits"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Http:
    """``transport.Transport`` over the network.

    ``urgent`` is another one to the same server and as the same user, whose requests have connections of their own:
    they wait neither for those of the other, nor for a server that is slow to answer those.
    """

    def __init__(self, endpoint: Endpoint, credentials: Credentials, *, limits: Limits | None = None) -> None:
        self._endpoint = endpoint
        self._credentials = credentials
        self._limits = limits or Limits()
        self._bulk = Pool(endpoint, turns=self._limits.connections, connect=self._limits.connect)
        self._reserved = Pool(endpoint, turns=self._limits.urgent, connect=self._limits.connect)
        self.urgent = _Urgent(self, self._reserved)
        self._shown: tuple[str, str] | None = None
        self._context: ssl.SSLContext | None = None

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> Answer:
        """One answer. A 401 is tried once more if other credentials can be had."""
        return await self.request_by(self._bulk, method, target, headers, body, stream=stream)

    async def request_by(
        self, pool: Pool, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool
    ) -> Answer:
        """The same on the connections of one class."""
        credential = await self._credentials.current()
        answer = await self._once(pool, credential, method, target, headers, body, stream)
        if answer.status == 401 and self._credentials.refused(credential):
            credential = await self._credentials.current()
            answer = await self._once(pool, credential, method, target, headers, body, stream)
        return answer

    def close(self) -> None:
        """Gives up all connections, those that stream and the urgent ones too."""
        self._bulk.close()
        self._reserved.close()

    async def _once(
        self,
        pool: Pool,
        credential: Credential,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        stream: bool,
    ) -> Answer:
        self._show(credential)
        data = self._encoded(method, target, [*headers.items(), *_authorization(credential)], body)
        if stream:
            return await self._answered(pool, method, data, stream=True)
        async with pool.turns:
            return await self._answered(pool, method, data, stream=False)

    async def _answered(self, pool: Pool, method: str, data: bytes, *, stream: bool) -> Answer:
        connection = await self._asked(pool, method, data)
        kept = False
        try:
            if stream and connection.status < 300:
                kept = True
                return Answer(connection.status, connection.headers, _Stream(connection, pool.release))
            return Answer(connection.status, connection.headers, await self._whole(connection))
        finally:
            if not kept:
                pool.release(connection)

    async def _asked(self, pool: Pool, method: str, data: bytes) -> Connection:
        """A connection on which the head of the answer has come.

        A kept connection may have been closed by the peer just before; then what changes nothing is asked again.
        """
        while True:
            connection, fresh = await pool.take(self._context)
            try:
                connection.send(data, bodiless=method == "HEAD")
                async with timeout(self._limits.answer):
                    await connection.head()
                return connection
            except BaseException as error:
                again = not fresh and method in ("GET", "HEAD") and connection.silent
                pool.give_up(connection)
                if connection.silent and not isinstance(error, Unavailable):
                    pool.renew()  # the peer may be gone without a word, and those kept are as dead as this one
                if isinstance(error, TimeoutError):
                    raise Unavailable(f"{self._endpoint.netloc} gave no answer in {self._limits.answer:g} s") from None
                if not (isinstance(error, Unavailable) and again):
                    raise

    async def _whole(self, connection: Connection) -> bytes:
        if (small := connection.taken(self._limits.body)) is not None:
            return small
        parts, size = [], 0
        async with contextlib.aclosing(connection.chunks()) as chunks:
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

    def _show(self, credential: Credential) -> None:
        """Connections are made with this certificate from now on; those that showed another are not used again."""
        shown = (credential.certificate, credential.key)
        if not self._endpoint.secure or shown == self._shown:
            return
        endpoint = self._endpoint
        self._context = tls.client_context(
            endpoint.authority, insecure=endpoint.insecure, certificate=shown[0], key=shown[1]
        )
        self._shown = shown
        self._bulk.renew()
        self._reserved.renew()

    def _encoded(self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
        lines = [f"{method} {self._endpoint.prefix}{target} HTTP/1.1", f"host: {self._endpoint.netloc}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body or method not in ("GET", "HEAD", "DELETE"):
            lines.append(f"content-length: {len(body)}")
        if _CONTROL.search("".join(lines)) or " " in target:
            raise InvalidInput("the request", [f"{method} {target!r}: blanks or control characters in path or headers"])
        return "\r\n".join([*lines, "", ""]).encode() + body


class _Urgent:
    """``transport.Transport`` of what cannot wait; closed by who it belongs to."""

    def __init__(self, http: Http, pool: Pool) -> None:
        self._http = http
        self._pool = pool

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> Answer:
        """One answer."""
        return await self._http.request_by(self._pool, method, target, headers, body, stream=stream)

    def close(self) -> None:
        """Gives up its connections; the others stay."""
        self._pool.close()


class _Stream:
    """``transport.Chunks`` of one connection."""

    def __init__(self, connection: Connection, release: Callable[[Connection], None]) -> None:
        self._connection = connection
        self._chunks = connection.chunks()
        self._release = release

    def __aiter__(self) -> "_Stream":
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except BaseException:
            self._release(self._connection)
            raise

    async def aclose(self) -> None:
        """Gives the connection back if all was read, else up."""
        await self._chunks.aclose()
        self._release(self._connection)


def _authorization(credential: Credential) -> Sequence[tuple[str, str]]:
    bearer = [("authorization", f"Bearer {credential.token}")] if credential.token else []
    return [*bearer, *credential.headers]
