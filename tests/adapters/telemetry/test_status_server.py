"""The pages for scrapers and probes: where they are, what answers, and what is said of an address that is taken."""

import asyncio
import logging
import re
import socket
from types import SimpleNamespace

import pytest

from lastcall.adapters.telemetry.status_server import TEXT, alive_answer, serve_status
from lastcall.errors import LastcallError
from lastcall.wiring.controller import ControllerProgram

PATHS = {"/healthz": alive_answer, "/readyz": lambda: (503, TEXT, b"starting\n")}


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
        async with serve_status(PATHS, ("127.0.0.1", 0)):
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
        async with serve_status(PATHS, ("127.0.0.1", port)):
            pass


async def test_without_an_address_nothing_is_served(caplog):
    with caplog.at_level(logging.INFO):
        async with serve_status(PATHS, None):
            assert caplog.text == ""


def own_address():
    """One of this machine's that is not loopback; None if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return None
        return probe.getsockname()[0]


async def asked_at(host, port, path):
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        return int(head.split()[1]), body
    finally:
        writer.close()
        await writer.wait_closed()


PAGES = {**PATHS, "/private": lambda: (200, TEXT, b"secret\n")}


@pytest.mark.parametrize("host", ["own", "0.0.0.0"])
async def test_what_is_private_is_answered_over_loopback_alone(caplog, host):
    """Scrapers and probes have the rest at the pod's address, as a kubelet asks there; port-forward comes over loopback."""
    own = own_address()
    if own is None or own.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    bound = own if host == "own" else host
    with caplog.at_level(logging.INFO):
        async with serve_status(PAGES, (bound, 0), private=("/private",)):
            port = int(re.findall(rf"metrics at http://{re.escape(bound)}:(\d+)/metrics", caplog.text)[-1])
            assert await asked_at(own, port, "/healthz") == (200, "ok\n")
            assert (await asked_at(own, port, "/private"))[0] == 403
            assert (await asked_at(own, port, "/private?x"))[0] == 403
            assert await asked_at("127.0.0.1", port, "/private") == (200, "secret\n")
            assert await asked_at("127.0.0.1", port, "/healthz") == (200, "ok\n")


async def test_where_loopback_is_taken_the_rest_is_served(caplog):
    own = own_address()
    if own is None or own.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    async with serve_status(PAGES, (own, port), private=("/private",)):
        assert await asked_at(own, port, "/healthz") == (200, "ok\n")
        assert "/private cannot be asked for" in caplog.text
    taken.close()


async def test_the_controllers_page_about_failovers_is_private(caplog):
    own = own_address()
    if own is None or own.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    controller = SimpleNamespace(
        _settings=SimpleNamespace(metrics=("0.0.0.0", 0)),
        _metrics_page=alive_answer,
        _readiness_page=alive_answer,
        _failover_page=alive_answer,
    )
    with caplog.at_level(logging.INFO):
        async with ControllerProgram._status_page(controller):
            port = int(re.findall(r"metrics at http://0.0.0.0:(\d+)/metrics", caplog.text)[-1])
            assert (await asked_at(own, port, "/failover"))[0] == 403
            assert (await asked_at("127.0.0.1", port, "/failover"))[0] == 200
            assert (await asked_at(own, port, "/readyz"))[0] == 200
