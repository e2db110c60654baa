"""The protocol of Redis (RESP2) over a connection to a pod: commands and their answers.

Provider connections go through ``NamespaceAccess``, which a client library with sockets of its own would bypass.
"""

from typing import Final

from lastcall.aio import timeout
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.ports.guard import MemberStream

MOST_BYTES: Final = 64 * 1024
_MOST_ITEMS: Final = 1024
_PART: Final = 4096

RedisValue = str | int | None | list["RedisValue"]


class RedisError(LastcallError):
    """The server's own error, such as ``NOAUTH`` or ``ERR unknown command``."""


class RedisConnection:
    """One connection; ``close`` ends it. Answers have 64 KiB at most."""

    def __init__(self, stream: MemberStream, title: str, seconds: float) -> None:
        self._stream = stream
        self._title = title
        self._seconds = seconds
        self._buffer = b""
        self._read = 0

    async def call(self, *words: str) -> RedisValue:
        """The answer to a command. RedisError if the server refuses it, TimedOut if none comes in time."""
        parts = [word.encode() for word in words]
        request = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in parts)
        self._read = 0
        try:
            async with timeout(self._seconds):
                await self._stream.write(request)
                return await self._read_value(depth=0)
        except TimeoutError:
            raise TimedOut(f"{self._title}: no answer to {words[0]} in {self._seconds:g} s") from None

    def close(self) -> None:
        """Ends the connection."""
        self._stream.close()

    async def _read_value(self, depth: int) -> RedisValue:
        line = await self._read_line()
        kind, rest = line[:1], line[1:].decode(errors="replace")
        match kind:
            case b"+":
                return rest
            case b"-":
                raise RedisError(f"{self._title}: {rest}")
            case b":":
                return self._number(rest)
            case b"$":
                return await self._read_bulk(self._number(rest))
            case b"*" if depth < 3:
                return await self._read_list(self._number(rest), depth)
            case _:
                raise Unavailable(f"{self._title} is no Redis: {line[:40]!r}")

    async def _read_bulk(self, size: int) -> str | None:
        if size < 0:
            return None
        self._require(size <= MOST_BYTES)
        return (await self._read_exactly(size + 2))[:-2].decode(errors="replace")

    async def _read_list(self, size: int, depth: int) -> list[RedisValue]:
        self._require(size <= _MOST_ITEMS)
        return [await self._read_value(depth + 1) for _ in range(size)]

    async def _read_line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            await self._read_more()
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    async def _read_exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            await self._read_more()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    async def _read_more(self) -> None:
        part = await self._stream.read(_PART)
        if not part:
            raise Unavailable(f"{self._title} has closed the connection")
        self._read += len(part)
        self._require(self._read <= MOST_BYTES)
        self._buffer += part

    def _number(self, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise Unavailable(f"{self._title} is no Redis: {text[:40]!r} is no number") from None

    def _require(self, holds: bool) -> None:
        if not holds:
            raise Unavailable(f"{self._title}: the answer is larger than {MOST_BYTES} bytes")
