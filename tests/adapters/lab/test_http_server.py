"""What hostile and unlucky clients send to the door of the lab's API server: an answer or an end, and no traceback."""

import asyncio
import contextlib
import logging
import os
import ssl
import struct
from random import Random

import pytest
from support.lab import https_server

from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.encoding.request_bodies import LIMIT
from lastcall_lab.apiserver.server import client_connection
from lastcall_lab.apiserver.subresources.kubelet_api import STDOUT
from lastcall_lab.apiserver.values.request import Request, Response

SECONDS = 60
HELLO = b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n"
LAST = HELLO.replace(b"host: x", b"host: x\r\nconnection: close")
UPGRADE = b"host: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: v5.channel.k8s.io\r\nauthorization: Bearer t\r\n"
EXEC = b"GET /api/v1/namespaces/default/pods/p/exec?command=cat&stdin=1&tty=1&stdout=1 HTTP/1.1\r\n" + UPGRADE + b"\r\n"


class Echo:
    """An execution that says what it was told, and its sizes."""

    def __init__(self):
        self.said, self.sizes = asyncio.Queue(), []

    async def write(self, data):
        self.said.put_nowait(data)

    def end_input(self):
        self.said.put_nowait(None)

    def resize(self, width, height):
        self.sizes.append((width, height))

    async def output(self):
        while (data := await self.said.get()) is not None:
            yield STDOUT, data

    async def wait(self):
        return 0

    def kill(self):
        self.said.put_nowait(None)


class Node:
    """A kubelet that starts such executions."""

    def __init__(self):
        self.started = []

    async def execute(self, pod, container, command, *, stdin, tty):
        if "\0" in command:
            raise ValueError("embedded null byte")
        self.started.append(Echo())
        return self.started[-1]


@contextlib.asynccontextmanager
async def door(tmp_path, handler=None):
    """A lab with a pod; yields how to connect, and its node."""
    lab, node = ApiServer(SystemClock(), Random(1)), Node()
    lab.identities.add("t", "admin", ("system:masters",))
    lab.streams.kubelets = lambda name: node
    for path, obj in (
        ("/api/v1/nodes", '{"metadata":{"name":"n"}}'),
        ("/api/v1/namespaces/default/serviceaccounts", '{"metadata":{"name":"default"}}'),
        (
            "/api/v1/namespaces/default/pods",
            '{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}',
        ),
    ):
        answer = await lab.handle(Request.of("POST", path, headers={"authorization": "Bearer t"}, body=obj.encode()))
        assert answer.status == 201, answer.body
    async with https_server.serving(handler or lab, tmp_path, lab.streams.serve_upgrade) as (url, authority):
        context = ssl.create_default_context(cadata=authority)

        async def connect():
            return await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), ssl=context)

        yield connect, node


async def told(connect, *parts):
    """All that is answered to these bytes until the server ends the connection."""
    reader, writer = await connect()
    await _write(writer, parts)
    try:
        async with asyncio.timeout(SECONDS):
            return await _all(reader)
    finally:
        writer.transport.abort()


async def said_to(connect, head, *frames):
    """All that is answered to a WebSocket's frames, until the server closes it."""
    reader, writer = await connect()
    try:
        async with asyncio.timeout(SECONDS):
            await _write(writer, [head])
            found = await reader.readuntil(b"\r\n\r\n")
            await _write(writer, frames)
            while b"\x88" not in found and (part := await reader.read(65536)):
                found += part
            return found
    finally:
        writer.transport.abort()


async def _write(writer, parts):
    for part in parts:
        writer.write(part)
        with contextlib.suppress(ConnectionError):
            await writer.drain()


async def _all(reader):
    found = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while part := await reader.read(65536):
            found += part
    return found


@pytest.fixture
def quiet(caplog):
    """Nothing is logged as an error, and nothing raises in a callback of the loop."""
    caplog.set_level(logging.DEBUG)
    yield
    bad = [record for record in caplog.get_records("call") if record.exc_info or record.levelno >= logging.ERROR]
    assert not bad, bad


@pytest.mark.parametrize("begun", [b"", b"G", b"GET /ver", b"GET /version HTTP/1.1\r\nhos", b"\r\n\r\n", HELLO + b"GE"])
async def test_half_a_request_is_hung_up_on(tmp_path, monkeypatch, quiet, begun):
    monkeypatch.setattr(client_connection, "HEAD_SECONDS", 0.3)
    async with door(tmp_path) as (connect, _):
        assert (await told(connect, begun)).endswith(b"400 Bad Request")


async def test_who_sends_a_byte_now_and_then_is_hung_up_on(tmp_path, monkeypatch, quiet):
    """What comes does not give it more time."""
    monkeypatch.setattr(client_connection, "HEAD_SECONDS", 0.5)
    async with door(tmp_path) as (connect, _):
        reader, writer = await connect()
        said, sent = asyncio.create_task(_all(reader)), 0
        try:
            async with asyncio.timeout(SECONDS):
                while not said.done():
                    await _write(writer, [b"x"])
                    await asyncio.sleep(0.05)
                    sent += 1
            assert (await said).endswith(b"400 Bad Request")
            assert sent < 60, "it is not refused for a method that is too long"
        finally:
            writer.transport.abort()
            await asyncio.wait_for(said, SECONDS)


async def test_half_a_body_is_hung_up_on(tmp_path, monkeypatch, quiet):
    monkeypatch.setattr(client_connection, "BODY_SECONDS", 0.3)
    async with door(tmp_path) as (connect, _):
        assert await told(connect, b"POST /version HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{") == b""


async def test_a_request_in_pieces_is_answered(tmp_path, quiet):
    """And two in one piece; the connection is used again."""
    async with door(tmp_path) as (connect, _):
        pieces = [HELLO[at : at + 3] for at in range(0, len(HELLO), 3)]
        said = await told(connect, *pieces, HELLO + HELLO, LAST)
        assert said.count(b"HTTP/1.1 200 OK") == 4


@pytest.mark.parametrize(
    "sent", [b"GET /" + b"x" * 2**21, b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 400_000], ids=["line", "headers"]
)
async def test_a_head_without_end(tmp_path, quiet, sent):
    async with door(tmp_path) as (connect, _):
        assert (await told(connect, sent)).startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


@pytest.mark.parametrize("head", [b"content-length: 1000000000", b"transfer-encoding: chunked"])
async def test_a_body_without_end(tmp_path, quiet, head):
    """413 as soon as it is too large, and the connection ends."""
    line = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\nauthorization: Bearer t\r\n" + head
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    async with door(tmp_path) as (connect, _):
        said = await told(connect, line + b"\r\n\r\n", *([chunk] * (LIMIT // 0x100000 + 2)))
        assert said.startswith(b"HTTP/1.1 413 ")
        assert b"Request entity too large: limit is 3145728" in said


async def test_methods_that_the_parser_does_not_know(tmp_path, quiet):
    """They come to the server like all others."""
    asked = []

    class Handler:
        async def handle(self, request):
            asked.append((request.method, request.path, request.body))
            return Response(405, {"connection": "close"}, b"")

    async with door(tmp_path, Handler()) as (connect, _):
        for method in (b"FOO", b"PROPFIND", b"get", b"CONNECT", b"X" * 70, b"TRACE"):
            said = await told(connect, method + b" /a HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
            assert said.startswith(b"HTTP/1.1 405 "), (method, said)
    assert asked[:2] == [("FOO", "/a", b"{}"), ("PROPFIND", "/a", b"{}")]
    assert [method for method, _, _ in asked[2:]] == ["get", "CONNECT", "X" * 70, "TRACE"]


async def test_what_is_no_request(tmp_path, quiet):
    """Bytes of all kinds, and requests with some of them wrong."""
    random = Random(1)
    async with door(tmp_path) as (connect, _):
        for _ in range(60):
            base = random.choice(
                [
                    HELLO,
                    EXEC,
                    os.urandom(0),
                    b"POST /x HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                ]
            )
            sent = bytearray(base + random.randbytes(random.choice([0, 5, 300])))
            for _place in range(random.choice([0, 1, 3])):
                if sent:
                    sent[random.randrange(len(sent))] = random.randrange(256)
            reader, writer = await connect()
            writer.write(bytes(sent))
            writer.write_eof() if writer.can_write_eof() else None
            with contextlib.suppress(TimeoutError, ConnectionError, ssl.SSLError):
                async with asyncio.timeout(0.05):
                    await reader.read(65536)
            writer.transport.abort()
        assert (await told(connect, LAST)).startswith(b"HTTP/1.1 200")


# -- WebSockets --------------------------------------------------------------------------------------------------------


def frame(data, opcode=2, fin=True):
    """A message of a client, masked by zeros."""
    size = len(data)
    length = bytes([0x80 | size]) if size < 126 else bytes([0xFE]) + struct.pack("!H", size)
    return bytes([opcode | (0x80 if fin else 0)]) + length + bytes(4) + data


GARBAGE = [b"", b"\x04", b"\x04{", b"\x04[]", b"\x04null", b'\x04{"Width":"x"}', b'\x04{"Width":-1}', b'\x04{"Width":1e99}', b"\x04" + b"[" * 60_000, b"\x04\xff\xfe", b"\xff", b"\xff\x09", b"\x01x", b"\x63x"]  # fmt: skip


async def test_garbage_on_the_channels_of_an_execution(tmp_path, quiet):
    """It is dropped, and the program goes on."""
    async with door(tmp_path) as (connect, node):
        frames = [frame(data) for data in GARBAGE] + [frame(b'\x04{"Width":9,"Height":8}'), frame(b"\x00hello")]
        said = await said_to(connect, EXEC, *frames, frame(b"\xff\x00"))
        assert said.startswith(b"HTTP/1.1 101 ")
        assert b"\x01hello" in said, said[-300:]
        assert b'"Success"' in said
    assert node.started[0].sizes == [(9, 8)]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(b"x", opcode=3), 1002),
        (frame(b"\xff\xfe", opcode=1), 1007),
        (frame(b"x", opcode=0), 1002),
        (b"\xff" * 100, 1002),
        (frame(b"x" * 60_000, fin=False) + frame(b"x" * 60_000, opcode=0, fin=False) * 20, 1009),
        (frame(b"\x03\xe8bye", opcode=8), 1000),
        (frame(b"\x00", opcode=8), 1002),
    ],
    ids=["opcode", "text", "continuation", "bytes", "large", "close", "close-code"],
)
async def test_what_is_no_message(tmp_path, quiet, sent, code):
    """The connection is closed, and why (RFC 6455, 7.4.1)."""
    async with door(tmp_path) as (connect, _):
        _, _, closing = (await said_to(connect, EXEC, sent)).rpartition(b"\x88")
        assert struct.unpack("!H", closing[1:3]) == (code,)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (b"/api/v1/namespaces/default/pods/p/exec?command=%00&stdin=1", b"101"),
        (b"/api/v1/namespaces/default/pods/p/exec", b"400"),
        (b"/api/v1/namespaces/default/pods/p/exec?command=a&container=%FF", b"400"),
        (b"/api/v1/namespaces/default/pods/x/exec?command=a", b"404"),
        (b"/api/v1/namespaces/default/pods/p/exec/%00?command=a", b"404"),
        (b"/\xff\xfe?\xff", b"400"),
        (b"/version", b"404"),
        (b"//", b"404"),
    ],
)
async def test_upgrades_that_are_refused(tmp_path, quiet, path, code):
    async with door(tmp_path) as (connect, _):
        head = b"GET " + path + b" HTTP/1.1\r\n" + UPGRADE + b"\r\n"
        said = await (said_to if code == b"101" else told)(connect, head)
        assert said.split(b" ", 2)[1] == code
