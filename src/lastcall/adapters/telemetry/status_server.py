"""A small HTTP server for metrics and probes: GET of a few fixed paths, on a loopback address by default.

Private paths are for administrators and are served on loopback alone. In a pod, ``kubectl port-forward`` reaches them,
for which its user needs a right in the cluster.
"""

import asyncio
import contextlib
import ipaddress
import logging
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping

from lastcall.aio import timeout
from lastcall.errors import LastcallError

log = logging.getLogger(__name__)

Answer = Callable[[], tuple[int, str, bytes]]
"""Returns status code, content type and body."""

_REASONS = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}
_PATIENCE = 5.0
"""Seconds within which a client must have sent its request."""

TEXT = "text/plain; charset=utf-8"


def alive_answer() -> tuple[int, str, bytes]:
    """The answer that shows that the process responds."""
    return 200, TEXT, b"ok\n"


@contextlib.asynccontextmanager
async def serve_status(
    paths: Mapping[str, Answer], address: tuple[str, int] | None, *, private: Collection[str] = ()
) -> AsyncIterator[None]:
    """Serves ``paths`` on host and port, and logs where; without paths nowhere. LastcallError if the port is taken.

    Those of ``private`` are served on loopback alone; so the same port is served there too, if it is free.
    """
    server = StatusServer(paths, private=private)
    if address:
        host, port = address
        try:
            chosen = await server.start(host, port)
        except OSError as error:
            # asyncio's own message hides the system's.
            said = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
            raise LastcallError(f"--metrics-bind-address {host}:{port}: {said}") from error
        log.info("metrics at http://%s:%s/metrics", host, chosen)
        if private:
            await server.start_beside(host, chosen)
    try:
        yield
    finally:
        server.close()


class StatusServer:
    """Serves ``paths``; one request for each connection."""

    def __init__(self, paths: Mapping[str, Answer], *, private: Collection[str] = ()) -> None:
        self._paths = dict(paths)
        self._private = frozenset(private)
        self._servers: list[asyncio.Server] = []

    async def start(self, host: str, port: int) -> int:
        """Listens and returns the port (0 selects a free one). Raises OSError if it is taken."""
        server = await asyncio.start_server(self._serve_client, host, port, limit=8192)
        self._servers.append(server)
        chosen: int = server.sockets[0].getsockname()[1]
        return chosen

    async def start_beside(self, host: str, port: int) -> None:
        """Listens on loopback too, unless ``host`` covers it. If the port is taken there, this is only logged."""
        loopback = _loopback_beside(host)
        try:
            if loopback:
                await self.start(loopback, port)
        except OSError:
            log.warning("%s port %s is taken: %s cannot be asked for", loopback, port, ", ".join(sorted(self._private)))

    def close(self) -> None:
        """Stops listening."""
        for server in self._servers:
            server.close()

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with timeout(_PATIENCE):
                    request = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer_request(request, writer.get_extra_info("peername")))
                async with timeout(_PATIENCE):
                    await writer.drain()
        finally:
            writer.close()

    def _answer_request(self, request: bytes, peer: tuple[str, int] | None) -> bytes:
        words = request.split(b"\r\n", 1)[0].split()
        if len(words) != 3:
            status, kind, body = 400, TEXT, b"not an HTTP request\n"
        elif words[0] not in (b"GET", b"HEAD"):
            status, kind, body = 405, TEXT, b"only GET\n"
        else:
            path = words[1].split(b"?", 1)[0].decode("latin-1")
            if path in self._private and not (peer and _is_loopback(peer[0])):
                status, kind, body = 403, TEXT, b"only over loopback, such as by kubectl port-forward\n"
            else:
                status, kind, body = self._paths.get(path, self._unknown_path)()
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"Connection: close\r\n\r\n" + (b"" if words[:1] == [b"HEAD"] else body)

    def _unknown_path(self) -> tuple[int, str, bytes]:
        return 404, TEXT, ("\n".join(["there is:", *self._paths]) + "\n").encode()


def _is_loopback(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


def _loopback_beside(host: str) -> str:
    """The loopback address to serve beside ``host``; empty if it is loopback, every address, or a name."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return ""
    if found.is_loopback or found.is_unspecified:
        return ""
    return "127.0.0.1" if found.version == 4 else "::1"
