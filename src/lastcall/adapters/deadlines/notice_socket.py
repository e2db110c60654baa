"""The agent's Unix socket for scripts of root's: a line of JSON for each connection, answered by another."""

import asyncio
import contextlib
import logging
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from lastcall.adapters.state.directory import explain_error
from lastcall.aio import timeout
from lastcall.errors import Unavailable

SOCKET_NAME = "notice.sock"
"""Its name in the state directory."""

MOST_BYTES = 8192
_SECONDS = 5.0
_CREDENTIALS = struct.Struct("3i")

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def serve_notices(path: Path, answer: Callable[[bytes], bytes]) -> AsyncIterator[None]:
    """Serves the socket while the context lasts, for root and for the agent's own user. ``answer`` must not block."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
                async with timeout(_SECONDS):
                    line = await _read_line(reader)
                    allowed = peer_uid(writer.get_extra_info("socket")) in (0, os.geteuid())
                    writer.write((answer(line) if allowed else _REFUSED) + b"\n")
                    await writer.drain()
        finally:
            writer.close()

    try:
        bound = await asyncio.to_thread(_bind, path)
        server = await asyncio.start_unix_server(serve, sock=bound, limit=MOST_BYTES)
    except OSError as error:
        raise explain_error(error, path) from error
    try:
        yield
    finally:
        server.close()
        await asyncio.to_thread(_remove_socket, path)


def _remove_socket(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


_REFUSED = b'{"ok":false,"error":"only root may announce a shutdown"}'


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """The first line, or all there is if the peer ends without one; ValueError if it is too long."""
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        raise ValueError("too long") from error


def peer_uid(connection: socket.socket) -> int:
    """The user of the process at the other end (SO_PEERCRED, unix(7)), as it was when it connected."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(data)
    return int(uid)


def _bind(path: Path) -> socket.socket:
    """A socket that is accessible to its owner only from its first moment; replaces one that an earlier process left."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    before = os.umask(0o177)
    try:
        if path.is_socket():
            path.unlink()
        bound.bind(str(path))
    except OSError:
        bound.close()
        raise
    finally:
        os.umask(before)
    return bound


def send_request(path: Path, line: bytes, *, seconds: float = _SECONDS) -> bytes:
    """Sends one line and returns the answer; Unavailable says what is missing. Blocks."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            connection.connect(str(path))
            connection.sendall(line + b"\n")
            with connection.makefile("rb") as file:
                answer = file.readline(1 << 20)
    except TimeoutError:
        raise Unavailable(f"the agent does not answer at {path} within {seconds:g} s") from None
    except OSError as error:
        hint = "is the agent running, with deadlines.socket in its configuration?"
        raise Unavailable(f"{path}: {error.strerror or error}: {hint}") from error
    if not answer:
        raise Unavailable(f"the agent at {path} has closed the connection")
    return answer
