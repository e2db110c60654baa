"""httpGet and sleep hooks against real servers on loopback."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.pods import hooks
from lastcall.model.pods import Container, ContainerPort, HTTPGetAction, HTTPHeader, SleepAction
from lastcall_lab import virtual

MAIN = Container(name="main", ports=(ContainerPort(name="admin", container_port=8443),))
CERTIFICATE = Path(__file__).parents[2] / "support" / "self_signed.pem"


@asynccontextmanager
async def server(answer, **options):
    """Gives every request these bytes, then leaves the connection open: its port, and the heads of the requests."""
    heads, writers = [], []

    async def serve(reader, writer):
        writers.append(writer)
        try:
            heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(answer)
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass

    running = await asyncio.start_server(serve, "127.0.0.1", 0, **options)
    try:
        yield running.sockets[0].getsockname()[1], heads
    finally:
        running.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


async def get(port, limit=10.0, **fields):
    action = HTTPGetAction(port=port, **fields)
    return await hooks.run_http_get(action, pod_ip="127.0.0.1", container=MAIN, limit=limit, clock=SystemClock())


def lines(head):
    return head.removesuffix("\r\n\r\n").split("\r\n")


class TestRequest:
    async def test_what_is_sent(self):
        async with server(b"HTTP/1.1 200 OK\r\n\r\n") as (port, heads):
            assert (await get(port, path="leave")).ok
        assert lines(heads[0]) == [
            "GET /leave HTTP/1.1",
            f"host: 127.0.0.1:{port}",
            "user-agent: lastcall",
            "accept: */*",
            "connection: close",
        ]

    async def test_the_callers_headers_win(self):
        headers = (HTTPHeader(name="Host", value="web.example"), HTTPHeader(name="X-Token", value="a b"))
        async with server(b"HTTP/1.1 200 OK\r\n\r\n") as (port, heads):
            assert (await get(port, http_headers=headers)).ok
        assert lines(heads[0])[:2] == ["GET / HTTP/1.1", "host: web.example"]
        assert "x-token: a b" in lines(heads[0])

    @pytest.mark.parametrize("name", ["X", "X-Tok\r\nen"])
    async def test_a_line_break_in_a_header_is_refused(self, name):
        headers = (HTTPHeader(name=name, value="a\r\nX-Evil: 1"),)
        async with server(b"HTTP/1.1 200 OK\r\n\r\n") as (port, heads):
            result = await get(port, http_headers=headers)
        assert not result.ok
        assert "control character" in result.message
        assert heads == []

    async def test_a_path_cannot_end_the_line(self):
        async with server(b"HTTP/1.1 200 OK\r\n\r\n") as (port, heads):
            await get(port, path="/a b\r\nX-Evil: 1?q=%20&r=ä")
        assert lines(heads[0])[0] == "GET /a%20b%0D%0AX-Evil:%201?q=%20&r=%C3%A4 HTTP/1.1"

    async def test_https_is_not_verified(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        async with server(b"HTTP/1.1 200 OK\r\n\r\n", ssl=context) as (port, heads):
            assert (await get(port, scheme="HTTPS")).ok
        assert lines(heads[0])[0] == "GET / HTTP/1.1"


class TestAnswer:
    @pytest.mark.parametrize("status", [b"200 OK", b"204 No Content", b"302 Found", b"399"])
    async def test_success(self, status):
        async with server(b"HTTP/1.1 " + status + b"\r\nContent-Length: 1000\r\n\r\nnot all of it") as (port, _):
            assert (await get(port)).ok

    @pytest.mark.parametrize("status", [b"400 Bad Request", b"404 Not Found", b"503 Not Now"])
    async def test_failure(self, status):
        async with server(b"HTTP/1.1 " + status + b"\r\n\r\n") as (port, _):
            result = await get(port, path="/x")
        assert (result.ok, result.timed_out) == (False, False)
        assert result.message == f"httpGet /x: answered {status[:3].decode()}"

    async def test_an_announcement_is_not_the_answer(self):
        async with server(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 500 Oh\r\n\r\n") as (port, _):
            assert "500" in (await get(port)).message

    @pytest.mark.parametrize("answer", [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 ok\r\n\r\n", b"HTTP/1.1\r\n\r\n"])
    async def test_what_is_not_http(self, answer):
        async with server(answer) as (port, _):
            result = await get(port)
        assert not result.ok
        assert "not an HTTP/1 answer" in result.message

    async def test_a_head_without_end(self):
        async with server(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 30_000) as (port, _):
            result = await get(port)
        assert not result.ok
        assert "64 KiB" in result.message

    async def test_silence(self):
        async with server(b"") as (port, heads):
            result = await get(port, limit=1.4984, path="/x")
        assert heads
        assert (result.ok, result.timed_out) == (False, True)
        assert result.message == "httpGet /x: no answer within 1.5 s"

    async def test_nobody_there(self):
        async with server(b"") as (port, _):
            pass
        result = await get(port)
        assert (result.ok, result.timed_out) == (False, False)
        assert result.message


class TestPorts:
    @pytest.mark.parametrize(("port", "number"), [(80, 80), ("8080", 8080), ("admin", 8443), ("", 80)])
    def test_numbers(self, port, number):
        assert hooks.port_number(port, MAIN) == number

    async def test_unknown_name(self):
        assert 'container "main" has no port named "web"' in (await get("web")).message


class TestSleep:
    """In virtual time."""

    def test_as_long_as_it_says(self):
        assert virtual.run(_sleep(600, limit=601)) == (600, True, False)
        assert virtual.run(_sleep(600, limit=600)) == (600, True, False)

    def test_no_longer_than_its_limit(self):
        assert virtual.run(_sleep(600, limit=30)) == (30, False, True)


async def _sleep(seconds, *, limit):
    clock = virtual.VirtualClock()
    result = await hooks.run_sleep(SleepAction(seconds=seconds), limit=limit, clock=clock)
    return clock.boottime(), result.ok, result.timed_out
