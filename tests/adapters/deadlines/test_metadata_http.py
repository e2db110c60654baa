"""A metadata service on loopback, as documented and with faults."""

import asyncio
import json

import pytest

from lastcall.adapters.deadlines.metadata_http import MOST_BYTES, HttpMetadataService
from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import Unavailable
from lastcall.graceful.deadlines.metadata_feeds import Ec2Feed

NOON = "Thu, 27 Nov 2025 12:00:00 GMT"


class Emulator:
    """Answers each request by a function of method, path and headers; None hangs, bytes are sent as they are."""

    def __init__(self, answer):
        self._answer = answer
        self.requests = []

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.endpoint = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _serve(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = head[0].split()
            headers = dict(line.split(": ", 1) for line in head[1:] if line)
            body = await reader.readexactly(int(headers.get("Content-Length", 0)))
            self.requests.append((method, path, headers, body))
            said = self._answer(method, path, headers)
            if said is None:
                await reader.read()
                return
            writer.write(said)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def http(status=200, body=b"", **headers):
    lines = {"Content-Length": str(len(body)), "Date": NOON, **headers}
    return (
        f"HTTP/1.1 {status} X\r\n".encode()
        + "".join(f"{k}: {v}\r\n" for k, v in lines.items()).encode()
        + b"\r\n"
        + body
    )


async def get(answer, *, within=60.0, **more):
    async with Emulator(lambda *_: answer) as emulator:
        service = HttpMetadataService(emulator.endpoint)
        said = await service.request("GET", "/x?a=b", {"Metadata": "true"}, within=within, **more)
        return said, emulator.requests


async def test_an_answer_with_its_time_and_tag():
    said, [(method, path, headers, body)] = await get(http(200, b"TRUE", ETag="abc"))
    assert (said.status, said.body, said.date, said.etag) == (200, b"TRUE", 1_764_244_800.0, "abc")
    assert (method, path, headers["Metadata"], headers["Host"], body) == ("GET", "/x?a=b", "true", headers["Host"], b"")
    assert headers["Host"].startswith("127.0.0.1:")


async def test_a_body_is_sent():
    async with Emulator(lambda *_: http()) as emulator:
        service = HttpMetadataService(emulator.endpoint)
        await service.request("POST", "/x", {}, body=b'{"a": 1}', within=60)
        assert emulator.requests[0][3] == b'{"a": 1}'


@pytest.mark.parametrize("date", ["", "yesterday", "Thu, 99 Nov 2025 12:00:00 GMT"])
async def test_a_time_that_is_none_is_unknown(date):
    assert (await get(http(Date=date)))[0].date is None


async def test_a_status_is_no_error():
    assert [(await get(http(number)))[0].status for number in (301, 404, 500)] == [301, 404, 500]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "does not speak HTTP"),
        (b"", "closed the connection"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "closed the connection"),
        (http(200, b"x" * (MOST_BYTES + 1)), f"more than {MOST_BYTES} bytes"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000, "headers of more than"),
    ],
)
async def test_what_is_no_whole_answer(answer, why):
    with pytest.raises(Unavailable, match=why):
        await get(answer)


async def test_a_service_that_hangs():
    with pytest.raises(Unavailable, match="does not answer within 0.3 s"):
        await get(None, within=0.3)


async def test_a_service_that_is_not_there():
    async with Emulator(lambda *_: b"") as emulator:
        pass
    with pytest.raises(Unavailable, match="cannot be reached"):
        await HttpMetadataService(emulator.endpoint).request("GET", "/", {}, within=60)


async def test_ec2_over_the_wire():
    """IMDSv2 as documented: a token by PUT, 401 without it, 404 while nothing is planned."""
    planned = {}

    def imds(method, path, headers):
        if (method, path) == ("PUT", "/latest/api/token"):
            return http(200, b"secret") if headers["X-aws-ec2-metadata-token-ttl-seconds"] == "21600" else http(400)
        if headers.get("X-aws-ec2-metadata-token") != "secret":
            return http(401)
        return http(200, json.dumps(planned[path]).encode()) if path in planned else http(404)

    async with Emulator(imds) as emulator:
        clock = SystemClock()
        feed = Ec2Feed(HttpMetadataService(emulator.endpoint), clock)
        assert (await feed.look()).notice is None
        planned["/latest/meta-data/spot/instance-action"] = {"action": "terminate", "time": "2025-11-27T12:02:00Z"}
        notice = (await feed.look()).notice
        assert notice.deadline - clock.boottime() <= 120
        assert notice.reason == "spot instance: terminate"
