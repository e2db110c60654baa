"""HTTPS to one server: a pool of kept connections, credentials, time and size limits."""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lastcall.adapters.kube import tls
from lastcall.adapters.kube.connection import Connection
from lastcall.adapters.kube.credentials import Credential, Credentials
from lastcall.adapters.kube.transport import Answer
from lastcall.errors import InvalidInput, Unavailable

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IDLE_SECONDS = 45.0
"""After which a kept connection is not used again: the peer may be about to close it."""


@dataclass(frozen=True)
class Endpoint:
    """Where a server is, and how it proves who it is. ``authority`` is PEM text; without one the system's count."""

    host: str
    port: int
    secure: bool = True
    prefix: str = ""
    authority: str = field(default="", repr=False)
    insecure: bool = False
    server_name: str = ""
    """The name in the server's certificate, if it is not ``host``."""

    @classmethod
    def of(cls, url: str, *, authority: str = "", insecure: bool = False, server_name: str = "") -> "Endpoint":
        """From ``https://host[:port][/prefix]`` or ``http://``; InvalidInput for anything else."""
        parts = urlsplit(url if "://" in url else f"https://{url}")
        try:
            port = parts.port
        except ValueError as error:
            raise InvalidInput("the server's URL", [f"{url!r}: {error}"]) from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidInput("the server's URL", [f"{url!r}: must be https://host[:port][/path]"])
        secure = parts.scheme == "https"
        return cls(
            parts.hostname,
            port or (443 if secure else 80),
            secure=secure,
            prefix=parts.path.rstrip("/"),
            authority=authority,
            insecure=insecure,
            server_name=server_name,
        )

    @property
    def netloc(self) -> str:
        """Host and port as URLs and the Host header have them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes: to connect (TLS included), until the head of an answer, between two parts of a whole body."""

    connect: float = 10.0
    answer: float = 60.0
    inactivity: float = 30.0
    body: int = 256 * 1024 * 1024
    connections: int = 64
    """Requests under way at once; more wait for their turn. Streams do not count."""


class Http:
    """``transport.Transport`` over the network."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials, *, limits: Limits | None = None) -> None:
        self._endpoint = endpoint
        self._credentials = credentials
        self._limits = limits or Limits()
        self._turns = asyncio.Semaphore(self._limits.connections)
        self._idle: list[tuple[float, Connection]] = []
        self._busy: list[Connection] = []
        self._shown: tuple[str, str] | None = None
        self._context: ssl.SSLContext | None = None
        self._closed = False

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> Answer:
        """One answer. A 401 is tried once more if the credentials can be had anew."""
        answer = await self._once(method, target, headers, body, stream)
        if answer.status == 401 and self._credentials.refused():
            answer = await self._once(method, target, headers, body, stream)
        return answer

    def close(self) -> None:
        """Gives up all connections, those that stream too."""
        self._closed = True
        for connection in [*self._busy, *(connection for _, connection in self._idle)]:
            connection.abort()
        self._idle, self._busy = [], []

    async def _once(self, method: str, target: str, headers: Mapping[str, str], body: bytes, stream: bool) -> Answer:
        credential = await self._credentials.current()
        self._show(credential)
        data = self._encoded(method, target, [*headers.items(), *_authorization(credential)], body)
        if stream:
            return await self._answered(method, data, stream=True)
        async with self._turns:
            return await self._answered(method, data, stream=False)

    async def _answered(self, method: str, data: bytes, *, stream: bool) -> Answer:
        connection = await self._asked(method, data)
        kept = False
        try:
            if stream and connection.status < 300:
                kept = True
                return Answer(connection.status, connection.headers, _Stream(connection, self._release))
            return Answer(connection.status, connection.headers, await self._whole(connection))
        finally:
            if not kept:
                self._release(connection)

    async def _asked(self, method: str, data: bytes) -> Connection:
        """A connection on which the head of the answer has come.

        A kept connection may have been closed by the peer just before; then what changes nothing is asked again.
        """
        while True:
            connection, fresh = await self._connection()
            try:
                connection.send(data, bodiless=method == "HEAD")
                async with asyncio.timeout(self._limits.answer):
                    await connection.head()
                return connection
            except BaseException as error:
                again = not fresh and method in ("GET", "HEAD") and connection.silent
                self._give_up(connection)
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
                async with asyncio.timeout(self._limits.inactivity) as patience:
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

    # -- connections ---------------------------------------------------------------------------------------------------

    async def _connection(self) -> tuple[Connection, bool]:
        """One to send on, and whether it is new."""
        if self._closed:
            raise Unavailable(f"the client of {self._endpoint.netloc} is closed")
        now = asyncio.get_running_loop().time()
        while self._idle:
            since, connection = self._idle.pop()
            if connection.usable and now - since < _IDLE_SECONDS:
                self._busy.append(connection)
                return connection, False
            connection.abort()
        connection = await self._connect()
        self._busy.append(connection)
        return connection, True

    async def _connect(self) -> Connection:
        endpoint = self._endpoint
        try:
            async with asyncio.timeout(self._limits.connect):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: Connection(endpoint.netloc),
                    endpoint.host,
                    endpoint.port,
                    ssl=self._context if endpoint.secure else None,
                    server_hostname=(endpoint.server_name or endpoint.host) if endpoint.secure else None,
                )
        except TimeoutError:
            raise Unavailable(f"{endpoint.netloc}: no connection in {self._limits.connect:g} s") from None
        except OSError as error:  # ssl.SSLError is one
            raise Unavailable(f"{endpoint.netloc}: {error.strerror or error}") from error
        return connection

    def _release(self, connection: Connection) -> None:
        """Keeps it for the next request if it can have one."""
        if connection in self._busy and connection.usable:
            self._busy.remove(connection)
            self._idle.append((asyncio.get_running_loop().time(), connection))
        else:
            self._give_up(connection)

    def _give_up(self, connection: Connection) -> None:
        if connection in self._busy:
            self._busy.remove(connection)
        connection.abort()

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
        for _, connection in self._idle:
            connection.abort()
        self._idle = []

    def _encoded(self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
        lines = [f"{method} {self._endpoint.prefix}{target} HTTP/1.1", f"host: {self._endpoint.netloc}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body or method not in ("GET", "HEAD", "DELETE"):
            lines.append(f"content-length: {len(body)}")
        if _CONTROL.search("".join(lines)) or " " in target:
            raise InvalidInput("the request", [f"{method} {target!r}: blanks or control characters in path or headers"])
        return "\r\n".join([*lines, "", ""]).encode() + body


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
