"""The pages for scrapers and probes: where they are, what answers, and what is said of an address that is taken."""

import asyncio
import logging
import re

import pytest

from lastcall.adapters.status_server import TEXT, alive, serving
from lastcall.errors import LastcallError

PATHS = {"/healthz": alive, "/readyz": lambda: (503, TEXT, b"starting\n")}


async def asked(port, line):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(line.encode() + b"\r\n\r\n")
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        return int(head.split()[1]), body
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def port(caplog):
    with caplog.at_level(logging.INFO):
        async with serving(PATHS, ("127.0.0.1", 0)):
            yield int(re.findall(r"metrics at http://127.0.0.1:(\d+)/metrics", caplog.text)[-1])


@pytest.mark.parametrize(
    ("line", "code", "body"),
    [
        ("GET /healthz HTTP/1.1", 200, "ok\n"),
        ("GET /readyz?x=1 HTTP/1.1", 503, "starting\n"),
        ("HEAD /healthz HTTP/1.1", 200, ""),
        ("GET / HTTP/1.1", 404, "there is:\n/healthz\n/readyz\n"),
        ("POST /healthz HTTP/1.1", 405, "only GET\n"),
        ("hello", 400, "not an HTTP request\n"),
    ],
)
async def test_what_is_answered(port, line, code, body):
    assert await asked(port, line) == (code, body)


async def test_an_address_that_is_taken_is_named_by_its_flag(port):
    with pytest.raises(LastcallError, match=rf"^--metrics-bind-address 127\.0\.0\.1:{port}: Address already in use$"):
        async with serving(PATHS, ("127.0.0.1", port)):
            pass


async def test_without_an_address_nothing_is_served(caplog):
    with caplog.at_level(logging.INFO):
        async with serving(PATHS, None):
            assert caplog.text == ""
