"""The server of the guard's webhook: HTTP as API servers speak it, and as others do."""

import asyncio
import contextlib
import json
import ssl
import time
from pathlib import Path

import pytest
from support.host.logind import eventually

from lastcall.adapters.kube import tls
from lastcall.adapters.webhook import https_server
from lastcall.adapters.webhook.http_exchange import WebhookReply
from lastcall.adapters.webhook.https_server import WebhookServer
from lastcall.adapters.webhook.webhook_connection import WebhookLimits
from lastcall.errors import InvalidInput
from lastcall_lab.apiserver.authentication.certificates import client_certificate, new_authority

PEM = Path(__file__).parents[2] / "support" / "self_signed.pem"


class Served:
    """A server whose handler repeats the body, after ``delay``."""

    def __init__(self, *, waits=True, **limits):
        """``waits``: whether an answer needs a task, or is there at once."""
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(PEM)
        self.waits = waits
        self.server = WebhookServer(self.handle, self.context, WebhookLimits(**limits))
        self.delay, self.requests, self.clients = 0.0, [], []

    def handle(self, request):
        self.requests.append(request)
        return self.answer_later(request) if self.waits else self.answer(request)

    async def answer_later(self, request):
        await asyncio.sleep(self.delay)
        return self.answer(request)

    def answer(self, request):
        if request.path == "/broken":
            raise ValueError("a bug")
        return WebhookReply(200, request.body)

    async def __aenter__(self):
        self.port = await self.server.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_):
        for client in self.clients:
            await client.close()
        self.server.close()

    async def connect(self, shown=None):
        """``shown`` is the certificate that the client presents."""
        client = ssl.create_default_context(cafile=PEM)
        client.check_hostname = False
        client.verify_mode = ssl.CERT_NONE
        if shown:
            tls.load_certificate(client, shown.certificate.decode(), shown.key.decode())
        self.clients.append(Client(*await asyncio.open_connection("127.0.0.1", self.port, ssl=client)))
        return self.clients[-1]


class Client:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def send(self, body=b"{}", *, path="/review?timeout=5s", method="POST", kind="application/json", more=""):
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        )
        self.writer.write(head.encode() + body)

    async def answer(self):
        """Status, headers and body; EOFError if there is none."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError as error:
            raise EOFError(error.partial) from None
        first, *lines = head.strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        body = await self.reader.readexactly(int(headers["Content-Length"]))
        return int(first.split()[1]), headers, body

    async def ask(self, *arguments, **more):
        self.send(*arguments, **more)
        return await self.answer()

    async def is_closed(self):
        return await self.reader.read(1) == b""

    async def close(self):
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


@pytest.mark.parametrize("waits", [False, True])
async def test_requests_are_answered_on_one_connection(waits):
    async with Served(waits=waits) as served:
        client = await served.connect()
        for number in range(3):
            body = json.dumps({"number": number}).encode()
            status, headers, said = await client.ask(body)
            assert (status, said, headers["Connection"]) == (200, body, "keep-alive")
        assert served.requests[0].path == "/review"
        assert served.requests[0].timeout_seconds == 5


@pytest.mark.parametrize("waits", [False, True])
async def test_requests_that_are_sent_at_once_are_answered_in_order(waits):
    async with Served(waits=waits) as served:
        client = await served.connect()
        for number in range(5):
            client.send(str(number).encode())
        assert [(await client.answer())[2] for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_body_in_chunks_and_byte_by_byte():
    async with Served() as served:
        client = await served.connect()
        client.writer.write(
            b"POST /review HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for byte in b'4\r\n{"a"\r\n3\r\n:1}\r\n0\r\n\r\n':
            client.writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert (await client.answer())[2] == b'{"a":1}'


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({"method": "GET"}, 405),
        ({"method": "DELETE"}, 405),
        ({"kind": "text/plain"}, 415),
        ({"kind": ""}, 415),
        ({"kind": "application/json; charset=utf-8"}, 200),
        ({"body": b"x" * 2000}, 413),
        ({"more": "X: " + "y" * 5000 + "\r\n"}, 431),
        ({"more": "Expect: nothing\r\n"}, 200),
        ({"path": "/broken"}, 500),
    ],
)
@pytest.mark.parametrize("waits", [False, True])
async def test_what_is_no_review_is_refused_and_the_server_lives(how, status, waits):
    async with Served(head=4096, body=1000, waits=waits) as served:
        client = await served.connect()
        assert (await client.ask(**how))[0] == status
        if status not in (200, 500):
            assert await client.is_closed()
        assert (await (await served.connect()).ask())[0] == 200


@pytest.mark.parametrize(
    "data", [b"garbage\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 5000]
)
async def test_garbage_is_refused(data):
    async with Served() as served:
        client = await served.connect()
        client.writer.write(data)
        with contextlib.suppress(ConnectionError):  # it closes before it has read all
            assert (await client.answer())[0] in (400, 431, 405)
            assert await client.is_closed()
        assert (await (await served.connect()).ask())[0] == 200


async def test_a_body_that_is_larger_than_it_says_is_cut():
    async with Served(body=1000) as served:
        client = await served.connect()
        client.writer.write(b"POST / HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.writer.write((b"1f4\r\n" + b"x" * 500 + b"\r\n") * 3)
        assert (await client.answer())[0] == 413


async def test_a_request_that_does_not_end_is_given_up():
    async with Served(receive=0.1) as served:
        client = await served.connect()
        client.writer.write(b"POST / HTTP/1.1\r\nContent-Le")
        assert await client.is_closed()


async def test_no_request_is_late_because_one_before_it_was_quick():
    """The timer of an earlier deadline ends nothing."""
    async with Served(receive=0.2, idle=60) as served:
        client = await served.connect()
        for _ in range(8):
            assert (await client.ask())[0] == 200
            await asyncio.sleep(0.05)
        client.writer.write(b"POST / HTTP/1.1\r\nContent-Le")
        assert await asyncio.wait_for(client.is_closed(), 60)


async def test_whoever_sends_while_he_is_answered_is_not_read_on():
    async with Served() as served:
        served.delay = 60.0
        client = await served.connect()
        client.send()

        async def count_requests():
            return len(served.requests)

        assert await eventually(count_requests, 1) == 1
        for _ in range(40):
            client.send(b"x" * 2**20)
            await asyncio.sleep(0.02)
        assert client.writer.transport.get_write_buffer_size() > 20 * 2**20
        client.writer.transport.abort()


async def test_a_half_request_behind_a_whole_one_is_given_up():
    async with Served(receive=0.3) as served:
        client = await served.connect()
        client.send()
        client.writer.write(b"POST / HTTP/1.1\r\nContent-Le")
        assert (await client.answer())[0] == 200
        assert await asyncio.wait_for(client.is_closed(), 60)


async def test_a_silent_connection_is_closed_after_a_while():
    async with Served(idle=0.1) as served:
        assert await (await served.connect()).is_closed()


async def test_there_are_only_so_many_connections(monkeypatch):
    monkeypatch.setattr(https_server, "MOST_CONNECTIONS", 3)
    async with Served() as served:
        served.delay = 60.0
        busy = [await served.connect() for _ in range(3)]
        for one in busy:
            one.send()

        async def count_requests():
            return len(served.requests)

        assert await eventually(count_requests, 3) == 3
        with pytest.raises((EOFError, ConnectionError)):
            await (await served.connect()).ask()


async def test_whoever_opens_many_connections_does_not_keep_others_out(monkeypatch):
    """The connection that was silent for longest makes room, and not the one that has just been used."""
    monkeypatch.setattr(https_server, "MOST_CONNECTIONS", 3)
    async with Served() as served:
        used = await served.connect()
        first, *_ = [await served.connect() for _ in range(2)]
        await asyncio.sleep(0.05)
        assert (await used.ask())[0] == 200
        assert (await (await served.connect()).ask())[0] == 200
        with pytest.raises((EOFError, ConnectionError)):
            await first.ask()
        assert (await used.ask())[0] == 200


async def test_an_idle_connection_makes_room_before_one_whose_request_has_begun(monkeypatch):
    monkeypatch.setattr(https_server, "MOST_CONNECTIONS", 3)
    async with Served() as served:
        begun, idle, other = [await served.connect() for _ in range(3)]
        begun.writer.write(b"POST /review HTTP/1.1\r\nHost: a\r\n")
        await begun.writer.drain()
        await asyncio.sleep(0.05)
        for one in (idle, other):
            assert (await one.ask())[0] == 200
        assert (await (await served.connect()).ask())[0] == 200
        with pytest.raises((EOFError, ConnectionError)):
            await idle.ask()
        begun.writer.write(b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        assert (await begun.answer())[0] == 200


async def test_a_client_with_a_certificate_of_the_authorities_is_known(tmp_path):
    now = time.time()
    authority, foreign = (new_authority(name, now=now) for name in ("ours", "theirs"))
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    async with Served() as served:
        tls.verify_clients(served.context, str(tmp_path / "ca.crt"), "--client-ca-file")
        for signer, name in ((authority, "kube-apiserver"), (foreign, "")):
            shown = client_certificate("kube-apiserver", (), signer, now=now)
            with contextlib.suppress(OSError, EOFError):
                await (await served.connect(shown)).ask()
            assert [one.peer for one in served.requests] == [name] * bool(name), "a foreign one is refused"
            served.requests.clear()
        assert (await (await served.connect()).ask())[0] == 200
        assert [one.peer for one in served.requests] == [""]


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_authorities_that_cannot_be_read_are_named(tmp_path, text):
    if text:
        (tmp_path / "ca.crt").write_text(text)
    with pytest.raises(InvalidInput, match=r"--client-ca-file(.|\n)*ca\.crt"):
        tls.verify_clients(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), str(tmp_path / "ca.crt"), "--client-ca-file")


async def test_a_client_that_goes_away_in_the_middle_is_no_trouble():
    async with Served() as served:
        served.delay = 0.2
        client = await served.connect()
        client.send()
        await client.writer.drain()
        client.writer.transport.abort()
        await asyncio.sleep(0.3)
        assert (await (await served.connect()).ask())[0] == 200


@pytest.mark.parametrize("waits", [False, True])
async def test_no_request_is_lost_while_it_ends(waits):
    """Clients that keep their connections, and open new ones as long as the server listens."""
    async with Served(waits=waits) as served:
        ended, lost, answered = asyncio.Event(), [], 0

        async def ask_on():
            nonlocal answered
            client = await served.connect()
            while True:
                try:
                    _, headers, _ = await client.ask(b"{}" * 100)
                except (EOFError, ConnectionError) as error:
                    lost.append(error)
                    return
                answered += 1
                if headers["Connection"] == "close":
                    await client.close()
                    try:
                        client = await served.connect()
                    except OSError:
                        return
                await asyncio.sleep(0.002)
                if ended.is_set():
                    return

        asking = [asyncio.create_task(ask_on()) for _ in range(20)]
        while answered < 50:
            await asyncio.sleep(0.01)
        before = answered
        # Its clients have other servers to go to, as soon as it is not ready: here they stop when connections are closed.
        draining = asyncio.create_task(served.server.drain(1))
        await asyncio.sleep(0.6)
        ended.set()
        await asyncio.gather(*asking, draining)
        assert not lost
        assert answered >= before


async def test_while_it_drains_it_keeps_connections_at_first():
    """A client whose connection is closed before others know of it would come back."""
    async with Served() as served:
        client = await served.connect()
        draining = asyncio.create_task(served.server.drain(1))
        await asyncio.sleep(0)
        assert (await client.ask())[1]["Connection"] == "keep-alive"
        while not served.server.closes_connections:
            await asyncio.sleep(0.01)
        assert (await client.ask())[1]["Connection"] == "close"
        await draining


async def test_the_last_request_is_answered_though_nobody_was_connected_for_a_moment():
    async with Served() as served:
        first = await served.connect()
        await first.ask()
        draining = asyncio.create_task(served.server.drain(0.2))
        await first.close()
        await asyncio.sleep(0.05)
        served.delay = 0.5
        last = await served.connect()
        last.send()
        await draining
        served.server.close()
        assert (await last.answer())[0] == 200


async def test_an_answer_that_is_larger_than_a_record_arrives_whole():
    async with Served(waits=False) as served:
        body = bytes(range(256)) * 4096
        assert (await (await served.connect()).ask(body))[2] == body


async def test_who_takes_no_answers_is_not_read_on():
    async with Served(waits=False) as served:
        client = await served.connect()
        client.writer.transport.pause_reading()
        for _ in range(40):
            client.send(b"x" * 2**20)
            await asyncio.sleep(0.02)
        assert len(served.requests) < 30
        assert client.writer.transport.get_write_buffer_size() > 2**20
        client.writer.transport.abort()


async def test_who_is_refused_hears_why_though_he_sends_on():
    """A connection that is closed with bytes that nobody has read is reset, and with it the answer."""
    async with Served(body=1000, end=60) as served:
        client = await served.connect()
        client.writer.transport.pause_reading()
        client.send(b"x" * 2**22)
        await asyncio.sleep(0.2)
        client.writer.transport.resume_reading()
        assert (await client.answer())[0] == 413
        assert await client.is_closed()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 500])
async def test_who_speaks_no_tls_is_sent_away(data):
    async with Served(handshake=300) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(data)
        with contextlib.suppress(ConnectionError):
            assert (await asyncio.wait_for(reader.read(), 60))[:1] in (b"\x15", b""), "an alert at most"
        writer.close()
        assert (await (await served.connect()).ask())[0] == 200


@pytest.mark.parametrize("data", [b"", b"\x16\x03\x01\x02\x00\x01\x00"])
async def test_who_does_not_end_his_handshake_is_sent_away(data):
    async with Served(handshake=0.1) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(data)
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()


async def test_connections_without_a_handshake_make_room_first(monkeypatch):
    monkeypatch.setattr(https_server, "MOST_CONNECTIONS", 3)
    async with Served() as served:
        idle = await served.connect()
        silent = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(5)]
        with contextlib.suppress(ConnectionError):
            assert await silent[0][0].read() == b"", "the first of them has made room"
        assert (await idle.ask())[0] == 200
        for _, writer in silent:
            writer.close()


async def test_a_connection_may_be_idle_for_longer_than_its_handshake_may_take():
    async with Served(handshake=0.5) as served:
        client = await served.connect()
        await asyncio.sleep(0.7)
        assert (await client.ask())[0] == 200


async def test_older_versions_of_tls_are_served_too():
    async with Served() as served:
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        client.maximum_version = ssl.TLSVersion.TLSv1_2
        served.clients.append(Client(*await asyncio.open_connection("127.0.0.1", served.port, ssl=client)))
        assert (await served.clients[-1].ask(b"{}"))[2] == b"{}"
