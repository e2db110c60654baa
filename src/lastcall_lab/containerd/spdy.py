"""SPDY/3.1 as far as a container runtime's streaming server needs it from its client: many streams on one connection.

By WebSocket the server of containerd 1.6 speaks ``v4.channel.k8s.io`` at most, which cannot say that the input is over.
There is no flow control, since the server has none; what headers it sends is of no interest. Its decompressor accepts
headers that were compressed without SPDY's dictionary.
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
"""Bytes in one frame that is sent."""


class SpdyFrame(NamedTuple):
    """What came on a stream; ``last`` if nothing comes there any more."""

    stream: int
    data: bytes
    last: bool


class SpdyConnection:
    """To one server; streams are opened from this side only."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._deflate = zlib.compressobj()
        self._next = 1

    @classmethod
    async def open(cls, url: str, *, protocol: str) -> "SpdyConnection":
        """Of an http URL, for this protocol upon the streams. Unavailable if there is none to be had."""
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
        """A new one, with its number."""
        number, self._next = self._next, self._next + 2
        pairs = [part for pair in headers.items() for part in pair]
        block = struct.pack("!I", len(headers)) + b"".join(
            struct.pack("!I", len(part)) + part.encode() for part in pairs
        )
        packed = self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        self._send_control(_SYN_STREAM, struct.pack("!IIBB", number, 0, 0, 0) + packed)
        return number

    async def send(self, stream: int, data: bytes) -> None:
        """Returns when there is room for more; what a server that has gone does not read is dropped."""
        for start in range(0, len(data), _LONGEST):
            self.post(stream, data[start : start + _LONGEST])
            try:
                await self._writer.drain()
            except OSError:
                return

    def post(self, stream: int, data: bytes) -> None:
        """Some bytes, without waiting."""
        self._writer.write(struct.pack("!II", stream, len(data)) + data)

    def end(self, stream: int) -> None:
        """Nothing more is sent on it."""
        self._writer.write(struct.pack("!II", stream, _FIN << 24))

    async def frames(self) -> AsyncIterator[SpdyFrame]:
        """What comes, until the connection ends."""
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
        """At once."""
        self._writer.close()

    def _send_control(self, kind: int, content: bytes) -> None:
        self._writer.write(struct.pack("!II", _CONTROL | _VERSION << 16 | kind, len(content)) + content)
