"""A minimal SPDY/3.1 client for a container runtime's streaming server: many streams on one connection.

By WebSocket the server of containerd 1.6 speaks at most ``v4.channel.k8s.io``, which cannot close the input. There is
no flow control, since the server has none; its headers are ignored. Its decompressor accepts headers that were
compressed without SPDY's dictionary.
"""

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlsplit

from lastcall.errors import Unavailable

_VERSION = 3
_SYN_STREAM, _RST_STREAM, _PING, _GOAWAY = 1, 3, 6, 7
_FIN = 1
_CONTROL = 0x80000000
_LONGEST = 32 * 1024
"""The most bytes in one sent frame."""


class SpdyFrame(NamedTuple):
    """A frame received on a stream; ``last`` if it is the stream's last one."""

    stream: int
    data: bytes
    last: bool


class SpdyConnection:
    """A connection to one server; only this side opens streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._deflate = zlib.compressobj()
        self._next = 1

    @classmethod
    async def open(cls, url: str, *, protocol: str) -> "SpdyConnection":
        """Connects to an http URL, with this protocol upon the streams; Unavailable if that fails."""
        parts = urlsplit(url)
        try:
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        except OSError as error:
            raise Unavailable(f"{parts.netloc} cannot be reached: {error}") from None
        head = f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        writer.write(f"{head}X-Stream-Protocol-Version: {protocol}\r\nContent-Length: 0\r\n\r\n".encode())
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError):
            answer = b""
        if not answer.startswith(b"HTTP/1.1 %d " % HTTPStatus.SWITCHING_PROTOCOLS):
            writer.close()
            said = answer.partition(b"\r\n")[0].decode(errors="replace") or "it hangs up"
            raise Unavailable(f"{parts.netloc} does not speak SPDY: {said}")
        return cls(reader, writer)

    def open_stream(self, **headers: str) -> int:
        """Opens a stream and returns its number."""
        number, self._next = self._next, self._next + 2
        pairs = [part for pair in headers.items() for part in pair]
        block = struct.pack("!I", len(headers)) + b"".join(
            struct.pack("!I", len(part)) + part.encode() for part in pairs
        )
        packed = self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        self._send_control(_SYN_STREAM, struct.pack("!IIBB", number, 0, 0, 0) + packed)
        return number

    async def send(self, stream: int, data: bytes) -> None:
        """Sends, and waits for room in the buffer; data for a disconnected server is dropped."""
        for start in range(0, len(data), _LONGEST):
            self.post(stream, data[start : start + _LONGEST])
            try:
                await self._writer.drain()
            except OSError:
                return

    def post(self, stream: int, data: bytes) -> None:
        """Sends a few bytes without waiting."""
        self._writer.write(struct.pack("!II", stream, len(data)) + data)

    def end(self, stream: int) -> None:
        """Closes our side of the stream."""
        self._writer.write(struct.pack("!II", stream, _FIN << 24))

    async def frames(self) -> AsyncIterator[SpdyFrame]:
        """Yields received frames until the connection ends."""
        while True:
            try:
                first, second = struct.unpack("!II", await self._reader.readexactly(8))
                flags, content = second >> 24, await self._reader.readexactly(second & 0xFFFFFF)
            except (OSError, asyncio.IncompleteReadError):
                return
            if not first & _CONTROL:
                yield SpdyFrame(first, content, bool(flags & _FIN))
                continue
            kind = first & 0xFFFF
            if kind == _RST_STREAM:
                yield SpdyFrame(struct.unpack("!I", content[:4])[0], b"", last=True)
            elif kind == _PING:
                self._send_control(_PING, content)
            elif kind == _GOAWAY:
                return

    def close(self) -> None:
        """Closes the connection at once."""
        self._writer.close()

    def _send_control(self, kind: int, content: bytes) -> None:
        self._writer.write(struct.pack("!II", _CONTROL | _VERSION << 16 | kind, len(content)) + content)
