"""The provider http: what it sends, and what it makes of answers, of hostile ones too."""

import asyncio
import gzip
import json
import ssl
import tempfile
import time

import pytest
from support.guard.members import Loopback, gone, member, pod

from lastcall.adapters.guard.http_provider import HttpProviderFactory
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall_lab.apiserver.authentication import certificates

NET = "127.63.8"


def sized(body, head=b"HTTP/1.1 200 OK"):
    return head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def said(**answer):
    return sized(json.dumps(answer).encode())


class Server:
    """Listens at the addresses of some pods, and answers each request with ``answer``, bytes or a coroutine."""

    def __init__(self):
        self.answer = said(state="ready", healthy=True)
        self.requests, self.asked = [], []
        self._writers = []

    async def serve(self, reader, writer):
        self._writers.append(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length")), 0)
            self.requests.append((head, await reader.readexactly(length)))
            self.asked.append(writer.get_extra_info("sockname")[0])
            if callable(self.answer):
                await self.answer(reader, writer)
            else:
                writer.write(self.answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        writer.transport.abort()

    async def start(self, *numbers, port, tls=None):
        self._listeners = [
            await asyncio.start_server(self.serve, pod(one, net=NET).status.pod_ip, port, ssl=tls) for one in numbers
        ]

    async def end(self):
        for listener in self._listeners:
            listener.close()
        for writer in self._writers:
            writer.transport.abort()
        for listener in self._listeners:
            await listener.wait_closed()
        await asyncio.sleep(0.01)


@pytest.fixture
async def server(unused_tcp_port):
    made = Server()
    made.port = unused_tcp_port
    await made.start(0, 2, port=made.port)
    yield made
    await made.end()


def http(server, access=None, **settings):
    return HttpProviderFactory().make_provider({"port": server.port, **settings}, access or Loopback())


def one(number, **rest):
    return member(number, net=NET, **rest)


async def test_what_is_sent(server):
    provider = http(server, Loopback(auth="s3cret"), path="/guard/", tokenSecret={"name": "auth"})
    await provider.prepare(one(0))
    await provider.check_progress(one(0))
    (post, body), (get, empty) = server.requests
    assert post.split("\r\n")[:2] == ["POST /guard/prepare HTTP/1.1", f"host: {NET}.1:{server.port}"]
    assert "\r\nauthorization: Bearer s3cret\r\n" in post
    assert "\r\nconnection: close\r\n" in post
    assert json.loads(body) == {"uid": "uid-0", "name": "redis-0", "namespace": "shop"}
    assert get.startswith("GET /guard/progress?uid=uid-0&name=redis-0&namespace=shop HTTP/1.1\r\n")
    assert empty == b""


async def test_each_question_has_its_path(server):
    provider = http(server, reversible=True)
    assert provider.is_reversible
    assert (await provider.check_health(one(0))).is_healthy
    await provider.prepare(one(0))
    await provider.check_progress(one(0))
    await provider.cancel(one(0))
    await provider.release(gone(0, net=NET))
    asked = [head.split()[:2] for head, _ in server.requests]
    assert [(verb, path.partition("?")[0]) for verb, path in asked] == [
        ("GET", "/health"),
        ("POST", "/prepare"),
        ("GET", "/progress"),
        ("POST", "/cancel"),
        ("POST", "/release"),
    ]


async def test_the_member_is_asked_and_after_it_is_gone_whoever_answers(server):
    provider = http(server)
    await provider.prepare(one(0))
    with pytest.raises(Unavailable):
        await provider.prepare(one(1))  # it does not listen, and nobody else is asked
    await provider.release(gone(0, net=NET))
    assert server.asked == [f"{NET}.1", f"{NET}.3"]


async def test_any_member_may_be_asked(server):
    provider = http(server, target="Any")
    await provider.prepare(one(0))
    await provider.prepare(one(2))
    assert server.asked == [f"{NET}.3", f"{NET}.1"]


async def test_nobody_to_ask(server):
    with pytest.raises(Unavailable, match="no pod of the application has an address"):
        await http(server).release(gone(0, of=1, net=NET))


async def test_what_it_says_of_its_progress(server):
    provider = http(server)
    server.answer = said(state="preparing", percent=37.9, etaSeconds=12, message="3 jobs\x1b[31m left\nnow", more=1)
    report = await provider.check_progress(one(0))
    assert (report.progress.value, report.percent, report.eta_seconds) == ("preparing", 37, 12)
    assert report.message == "3 jobs\N{REPLACEMENT CHARACTER}[31m left now"
    server.answer = said(healthy=False, message="2 of 3")
    health = await provider.check_health(one(0))
    assert (health.is_healthy, health.message) == (False, "2 of 3")


DEEP = b"[" * 30_000 + b"]" * 30_000
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WRONG = {
    "a redirect": (b"HTTP/1.1 307 x\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n", "redirect"),
    "a refusal": (sized(b"no\nway", b"HTTP/1.1 409 Conflict"), "answered 409: no way"),
    "5 MiB": (sized(b"x" * 5 * 2**20), "more than 65536 bytes"),
    "5 MiB in chunks": (CHUNKED + b"10000\r\n" + b"x" * 0x10000 + b"\r\n10000\r\n" + b"x" * 0x10000, "more than 65536"),
    "endless headers": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000, "headers have more than"),
    "compressed": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 40\r\n\r\n" + gzip.compress(b"{}"),
        "compressed",
    ),
    "no JSON": (sized(b"<html>"), "no JSON"),
    "no object": (sized(b"[]"), "no JSON object"),
    "too deep": (sized(DEEP), "no JSON"),
    "no text": (sized(b'{"state": "\xff"}'), "no JSON"),
    "an unknown state": (said(state="done"), 'state: "done": must be preparing, ready, stalled or lost'),
    "too much": (said(state="ready", percent=120), "percent: 120: must be a number <= 100"),
    "a text as number": (said(state="ready", percent="50"), 'percent: "50": must be a number'),
    "nothing": (sized(b""), 'has no "state"'),
    "no state": (said(message="hello"), 'has no "state"'),
}
BROKEN = {
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
    "no answer": (b"", "closed before"),
    "cut short": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "closed before"),
    "cut in a chunk": (CHUNKED + b"5\r\n{", "closed before"),
    "an upgrade": (b"HTTP/1.1 101 x\r\nUpgrade: y\r\nConnection: upgrade\r\n\r\n", "HTTP|closed"),
    "an error": (sized(b"oops", b"HTTP/1.1 500 x"), "answered 500: oops"),
    "overload": (sized(b"", b"HTTP/1.1 429 x"), "answered 429"),
}


@pytest.mark.parametrize(("answer", "words"), WRONG.values(), ids=WRONG)
async def test_an_answer_that_cannot_be_used(server, answer, words):
    server.answer = answer
    with pytest.raises(LastcallError, match=words) as caught:
        await http(server).check_progress(one(0))
    assert not isinstance(caught.value, (Unavailable, TimedOut))
    assert len(server.requests) == 1


@pytest.mark.parametrize(("answer", "words"), BROKEN.values(), ids=BROKEN)
async def test_no_answer(server, answer, words):
    server.answer = answer
    with pytest.raises(Unavailable, match=words):
        await http(server).check_progress(one(0))


@pytest.mark.parametrize(
    "piece", [b"", b"x", b"X-Slow: 1\r\n", b"1\r\n \r\n"], ids=["silent", "slow", "headers", "body"]
)
async def test_a_slow_answer_ends_in_time(server, piece):
    async def drip(reader, writer):
        writer.write(CHUNKED if b"\r\n " in piece else b"HTTP/1.1 200 OK\r\n")
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.05)

    server.answer = drip
    with pytest.raises(TimedOut, match="no answer in 1 s"):
        await http(server, timeoutSeconds=1).check_progress(one(0))


@pytest.mark.parametrize("piece", [b"1\r\n \r\n" * 1000, b"1;" + b"e" * 4000], ids=["chunks", "extensions"])
async def test_an_endless_answer_ends(server, piece):
    async def flood(reader, writer):
        writer.write(CHUNKED)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()

    server.answer = flood
    with pytest.raises(LastcallError):
        await http(server, timeoutSeconds=9).check_progress(one(0))


async def test_answers_in_pieces(server):
    async def pieces(reader, writer):
        for byte in b"HTTP/1.1 103 Early\r\n\r\n" + CHUNKED + b'5\r\n{"sta\r\n0c\r\nte":"ready"}\r\n0\r\n\r\n':
            writer.write(bytes([byte]))
            await asyncio.sleep(0)

    server.answer = pieces
    assert (await http(server).check_progress(one(0))).progress.value == "ready"
    server.answer = b'HTTP/1.1 200 OK\r\n\r\n{"state":"lost"}'  # ends with the connection
    assert (await http(server).check_progress(one(0))).progress.value == "lost"


async def test_no_token_in_a_message(server):
    async def echo(reader, writer):
        writer.write(sized(server.requests[-1][0].encode(), b"HTTP/1.1 403 Forbidden"))

    server.answer = echo
    provider = http(server, Loopback(auth="s3cret"), tokenSecret={"name": "auth"})
    with pytest.raises(LastcallError, match="403") as caught:
        await provider.prepare(one(0))
    assert "s3cret" not in str(caught.value)
    with pytest.raises(LastcallError, match="characters that no header may have") as caught:
        await http(server, Loopback(auth="a\r\nb: c"), tokenSecret={"name": "auth"}).prepare(one(0))


async def test_tls(unused_tcp_port):
    authority = certificates.new_authority("test", now=time.time())
    pair = certificates.server_certificate("app", (f"{NET}.1", "app.shop.svc"), authority, now=time.time())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.certificate + b"\n" + pair.key)
        file.flush()
        context.load_cert_chain(file.name)
    server = Server()
    server.port = unused_tcp_port
    await server.start(0, port=server.port, tls=context)
    try:
        access = Loopback(
            ca=authority.certificate.decode(),
            other=certificates.new_authority("x", now=time.time()).certificate.decode(),
        )
        settings = {"scheme": "https", "caSecret": {"name": "ca"}}
        await http(server, access, **settings).prepare(one(0))
        await http(server, access, **settings, serverName="app.shop.svc").prepare(one(0))
        with pytest.raises(LastcallError, match="not valid for"):
            await http(server, access, **settings, serverName="other").prepare(one(0))
        with pytest.raises(LastcallError, match="its certificate is not accepted") as caught:
            await http(server, access, scheme="https", caSecret={"name": "other"}).prepare(one(0))
        assert not isinstance(caught.value, Unavailable), "it counts as silent, and its pod may be let go"
        assert len(server.requests) == 2
    finally:
        await server.end()


@pytest.mark.parametrize(
    ("settings", "violation"),
    [
        ({}, "spec.provider.http.port: missing: must be given"),
        ({"port": 70000}, "spec.provider.http.port: 70000: must be an integer <= 65535"),
        ({"port": 1, "scheme": "ftp"}, 'spec.provider.http.scheme: "ftp": must be http or https'),
        ({"port": 1, "path": "x"}, 'spec.provider.http.path: "x"'),
        ({"port": 1, "path": "/a b"}, 'spec.provider.http.path: "/a b"'),
        ({"port": 1, "path": "/a\r\nx: y"}, "spec.provider.http.path"),
        ({"port": 1, "path": "/a?b"}, 'spec.provider.http.path: "/a?b"'),
        ({"port": 1, "caSecret": {"name": "a"}}, 'spec.provider.http.caSecret: "a": needs scheme https'),
        ({"port": 1, "tokenSecret": {"nam": "a"}}, "spec.provider.http.tokenSecret.name: missing"),
        ({"port": 1, "tokenSecret": {"name": "../a"}}, 'spec.provider.http.tokenSecret.name: "../a"'),
        (
            {"port": 1, "timeoutSecond": 1},
            "spec.provider.http.timeoutSecond: 1: unknown field, did you mean timeoutSeconds?",
        ),
    ],
)
def test_settings_that_it_does_not_take(settings, violation):
    found = HttpProviderFactory().check_settings(settings)
    assert any(one.startswith(violation) for one in found), found
