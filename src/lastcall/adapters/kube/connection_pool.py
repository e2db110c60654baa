"""Idle connections to one server for one class of requests; requests of other classes use other pools."""

import asyncio
import os
import ssl

from lastcall.adapters.kube.endpoint import ServerEndpoint
from lastcall.adapters.kube.http_connection import HttpConnection
from lastcall.aio import timeout
from lastcall.errors import NotConnected, Unavailable

_IDLE_SECONDS = 45.0
"""Seconds after which an idle connection is not reused: the peer may be about to close it."""


class ConnectionPool:
    """``turns`` limits the requests under way; ``connect`` is how long connecting may take, in seconds."""

    def __init__(self, endpoint: ServerEndpoint, *, turns: int, connect: float) -> None:
        self.turns = asyncio.Semaphore(turns)
        self._endpoint = endpoint
        self._connect_seconds = connect
        self._idle: list[tuple[float, HttpConnection]] = []
        self._busy: list[HttpConnection] = []
        self._closed = False

    async def acquire(self, context: ssl.SSLContext | None) -> tuple[HttpConnection, bool]:
        """A connection for a request, and whether it is new. Raises NotConnected if none can be made in time."""
        if self._closed:
            raise Unavailable(f"the client of {self._endpoint.netloc} is closed")
        now = asyncio.get_running_loop().time()
        while self._idle:
            since, connection = self._idle.pop()
            if connection.is_reusable and now - since < _IDLE_SECONDS:
                self._busy.append(connection)
                return connection, False
            connection.abort()
        connection = await self._open_connection(context)
        self._busy.append(connection)
        return connection, True

    def release(self, connection: HttpConnection) -> None:
        """Keeps the connection for the next request, if it can carry one."""
        if connection in self._busy and connection.is_reusable:
            self._busy.remove(connection)
            self._idle.append((asyncio.get_running_loop().time(), connection))
        else:
            self.give_up(connection)

    def give_up(self, connection: HttpConnection) -> None:
        """Ends the connection at once."""
        if connection in self._busy:
            self._busy.remove(connection)
        connection.abort()

    def discard_idle(self) -> None:
        """Closes the idle connections, so that none is reused."""
        for _, connection in self._idle:
            connection.abort()
        self._idle = []

    def close(self) -> None:
        """Ends all connections, streaming ones too."""
        self._closed = True
        for connection in self._busy:
            connection.abort()
        self._busy = []
        self.discard_idle()

    async def _open_connection(self, context: ssl.SSLContext | None) -> HttpConnection:
        endpoint = self._endpoint
        try:
            async with timeout(self._connect_seconds):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: HttpConnection(endpoint.netloc),
                    endpoint.host,
                    endpoint.port,
                    ssl=context if endpoint.secure else None,
                    server_hostname=(endpoint.server_name or endpoint.host) if endpoint.secure else None,
                )
        except TimeoutError:
            raise NotConnected(f"{endpoint.netloc}: no connection in {self._connect_seconds:g} s") from None
        except OSError as error:  # ssl.SSLError is one
            raise NotConnected(f"{endpoint.netloc}: {_error_text(error)}") from error
        return connection


def _error_text(error: OSError) -> str:
    """The operating system's message: asyncio's own says "Connect call failed", whatever the reason is."""
    if error.errno and (error.strerror or "").startswith("Connect call failed"):
        return os.strerror(error.errno)
    return error.strerror or str(error)
