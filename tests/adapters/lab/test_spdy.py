"""SPDY against a server of the test's own: frames as they are on the wire."""

import asyncio
import struct
import zlib

import pytest

from lastcall.errors import Unavailable
from lastcall_lab.containerd import spdy

UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\n\r\n"
WITHIN = 5.0


@pytest.fixture
async def serve():
    """Starts a server that does this with each connection; its URL."""
    servers = []

    async def serve(work):
        async def attend(reader, writer):
            try:
                await work(reader, writer)
            finally:
                writer.close()

        server = await asyncio.start_server(attend, "127.0.0.1", 0)
        servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/exec/token"

    yield serve
    for server in servers:
        server.close()


def upgraded(work):
    async def attend(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"POST /exec/token HTTP/1.1\r\n")
        assert b"X-Stream-Protocol-Version: v4\r\n" in head
        writer.write(UPGRADED)
        await work(reader, writer)

    return attend


async def said(reader):
    """One frame: its two words, and what is in it."""
    first, second = struct.unpack("!II", await reader.readexactly(8))
    return first, second >> 24, await reader.readexactly(second & 0xFFFFFF)


async def test_streams_and_what_goes_over_them(serve):
    heard = []

    async def work(reader, writer):
        heard.extend([await said(reader) for _ in range(6)])

    connection = await spdy.SpdyConnection.open(await serve(upgraded(work)), protocol="v4")
    one, two = connection.open_stream(streamtype="stdin"), connection.open_stream(streamtype="error")
    await connection.send(one, b"x" * 70_000)
    connection.end(one)
    async with asyncio.timeout(WITHIN):
        assert [frame async for frame in connection.frames()] == []
    connection.close()
    assert (one, two) == (1, 3), "those of a client are odd"
    inflate = zlib.decompressobj()
    for (first, _, content), number, name in zip(heard, (one, two), (b"stdin", b"error"), strict=False):
        assert first == 0x80030001
        assert struct.unpack("!IIH", content[:10]) == (number, 0, 0)
        pair = b"".join(struct.pack("!I", len(part)) + part for part in (b"streamtype", name))
        assert inflate.decompress(content[10:]) == struct.pack("!I", 1) + pair
    assert [(first, flags, len(content)) for first, flags, content in heard[2:]] == [
        (1, 0, 32_768),
        (1, 0, 32_768),
        (1, 0, 4_464),
        (1, 1, 0),
    ]


async def test_what_a_server_sends(serve):
    ponged = asyncio.get_running_loop().create_future()

    async def work(reader, writer):
        writer.write(struct.pack("!III", 0x80030006, 4, 2))  # PING
        ponged.set_result(await said(reader))
        writer.write(struct.pack("!III", 0x80030002, 4, 1))  # SYN_REPLY
        writer.write(struct.pack("!II", 5, 3) + b"one" + struct.pack("!II", 5, 1 << 24 | 3) + b"two")
        writer.write(struct.pack("!IIII", 0x80030003, 8, 7, 1))  # RST_STREAM
        writer.write(struct.pack("!IIII", 0x80030007, 8, 0, 0))  # GOAWAY
        writer.write(struct.pack("!II", 5, 4) + b"more")

    connection = await spdy.SpdyConnection.open(await serve(upgraded(work)), protocol="v4")
    async with asyncio.timeout(WITHIN):
        frames = [frame async for frame in connection.frames()]
    connection.close()
    assert frames == [(5, b"one", False), (5, b"two", True), (7, b"", True)]
    assert ponged.result() == (0x80030006, 0, struct.pack("!I", 2))


@pytest.mark.parametrize(
    ("answer", "message"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak SPDY: HTTP/1.1 400 Bad Request"), (b"", "it hangs up")],
)
async def test_a_server_that_refuses(serve, answer, message):
    async def work(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    with pytest.raises(Unavailable, match=message):
        await spdy.SpdyConnection.open(await serve(work), protocol="v4")


async def test_no_server():
    with pytest.raises(Unavailable, match="127.0.0.1:1 cannot be reached"):
        await spdy.SpdyConnection.open("http://127.0.0.1:1/exec/token", protocol="v4")
