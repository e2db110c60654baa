"""The HTTP client against servers that misbehave, on raw sockets; and with certificates on both sides."""

import asyncio
import contextlib
import ssl
import time

import pytest

from lastcall import errors
from lastcall.adapters.kube.credentials import Credential, Fixed
from lastcall.adapters.kube.http import Endpoint, Http, Limits
from lastcall.lab.apiserver import certificates

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers each connection with ``serve(reader, writer)``; ``requests`` are what came, ``connections`` how many."""

    def __init__(self, serve):
        self._serve = serve
        self.requests, self.connections = [], 0
        self._open = {}

    async def handle(self, reader, writer):
        self.connections += 1
        self._open[writer] = asyncio.current_task()
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._serve(self, reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
        self._open.pop(writer, None)

    async def end(self):
        tasks = list(self._open.values())
        for writer in self._open:
            writer.transport.abort()
        await asyncio.gather(*tasks)

    async def request(self, reader):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length")), 0)
        self.requests.append((head, await reader.readexactly(length)))
        return head


@contextlib.asynccontextmanager
async def talking(serve, *, credential=None, tls=None, authority="", limits=None, **rest):
    server = Server(serve)
    listener = await asyncio.start_server(server.handle, "127.0.0.1", 0, ssl=tls)
    scheme = "https" if tls else "http"
    url = f"{scheme}://127.0.0.1:{listener.sockets[0].getsockname()[1]}/base"
    client = Http(Endpoint.of(url, authority=authority, **rest), credential or Fixed(Credential()), limits=limits)
    try:
        yield client, server
    finally:
        client.close()
        listener.close()
        await listener.wait_closed()
        await server.end()


def always(answer):
    async def serve(server, reader, writer):
        while True:
            await server.request(reader)
            writer.write(answer)
            await writer.drain()

    return serve


async def get(client, **rest):
    return await client.request("GET", "/x?a=1", {"accept": "*/*"}, b"", **rest)


async def test_a_connection_is_used_again_and_says_what_it_must():
    async with talking(always(OK), credential=Fixed(Credential(token="t"))) as (client, server):
        for _ in range(3):
            assert (await get(client)).body == b"ok"
        await client.request("POST", "/y", {}, b"body")
    assert server.connections == 1
    head = server.requests[0][0].lower()
    assert head.startswith("get /base/x?a=1 http/1.1\r\nhost: 127.0.0.1:")
    assert "\r\nauthorization: bearer t\r\n" in head
    assert server.requests[3][1] == b"body"


async def test_requests_at_once_have_connections_of_their_own_up_to_the_limit():
    async def serve(server, reader, writer):
        while True:
            await server.request(reader)
            await asyncio.sleep(0.05)
            writer.write(OK)

    async with talking(serve, limits=Limits(connections=3)) as (client, server):
        await asyncio.gather(*(get(client) for _ in range(9)))
        assert server.connections == 3


async def test_chunks_headers_and_interim_answers():
    answer = (
        b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nWarning: a\r\nWarning: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    async with talking(always(answer + b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n")) as (client, _):
        got = await get(client)
        assert (got.status, got.body, got.headers["warning"]) == (200, b"abcde", "a, b")
        assert (await get(client)).body == b"abcde"


async def test_a_body_that_ends_with_the_connection():
    async def serve(server, reader, writer):
        await server.request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of it")

    async with talking(serve) as (client, server):
        assert (await get(client)).body == b"all of it"
        assert (await get(client)).body == b"all of it"
        assert server.connections == 2


async def test_a_kept_connection_that_was_closed_is_no_failure_for_what_can_be_asked_again():
    async def serve(server, reader, writer):
        await server.request(reader)
        writer.write(OK)
        await writer.drain()
        await server.request(reader)  # and closes without an answer

    async with talking(serve) as (client, server):
        await get(client)
        assert (await get(client)).body == b"ok"
        with pytest.raises(errors.Unavailable, match="closed the connection"):
            await client.request("POST", "/", {}, b"once")
        assert [body for _, body in server.requests].count(b"once") == 1


BROKEN = {
    "no HTTP": (b"hello world\r\n\r\n", "does not speak HTTP"),
    "cut short": (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "closed the connection"),
    "cut in a chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "closed the connection"),
    "endless headers": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20000, "headers of more than"),
    "too large": (b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000, "sent more than 1000 bytes"),
}


@pytest.mark.parametrize(("answer", "said"), BROKEN.values(), ids=BROKEN)
async def test_a_broken_answer_is_unavailable(answer, said):
    async def serve(server, reader, writer):
        await server.request(reader)
        writer.write(answer)
        await writer.drain()

    async with talking(serve, limits=Limits(body=1000)) as (client, _):
        with pytest.raises(errors.Unavailable, match=said):
            await get(client)


@pytest.mark.parametrize(
    ("answer", "said"),
    [(b"", "gave no answer in 1.5 s"), (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", "in the middle")],
)
async def test_silence_is_unavailable(answer, said):
    async def serve(server, reader, writer):
        await server.request(reader)
        writer.write(answer)
        await reader.read()

    async with talking(serve, limits=Limits(answer=1.5, inactivity=1.5)) as (client, _):
        with pytest.raises(errors.Unavailable, match=said):
            await get(client)


async def test_nobody_there():
    async with talking(always(OK)) as (client, _):
        pass
    with pytest.raises(errors.Unavailable, match="closed"):
        await get(client)
    nobody = Http(Endpoint.of("http://127.0.0.1:1"), Fixed(Credential()))
    with pytest.raises(errors.Unavailable, match="^127.0.0.1:1: Connection refused$"):
        await get(nobody)


async def test_cancelling_gives_the_connection_up():
    gone = asyncio.Event()

    async def serve(server, reader, writer):
        await server.request(reader)
        await reader.read()
        gone.set()

    async with talking(serve) as (client, _):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(get(client), 0.1)
        await asyncio.wait_for(gone.wait(), 60)


async def test_a_peer_that_is_gone_without_a_word_costs_one_request_only():
    silent = False

    async def serve(server, reader, writer):
        dead = False
        while True:
            await server.request(reader)
            await asyncio.sleep(0.02)
            dead = dead or (silent and server.connections == 3)
            if not dead:
                writer.write(OK)

    async with talking(serve, limits=Limits(answer=2.0)) as (client, server):
        await asyncio.gather(*(get(client) for _ in range(3)))
        assert server.connections == 3
        silent = True
        with pytest.raises(errors.Unavailable, match="gave no answer"):
            await get(client)
        assert (await get(client)).body == b"ok"
        assert server.connections == 4


async def test_a_stream_comes_as_it_is_sent_and_closing_ends_it():
    gone = asyncio.Event()

    async def serve(server, reader, writer):
        await server.request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await reader.read()
        gone.set()

    async with talking(serve) as (client, _):
        answer = await get(client, stream=True)
        assert await anext(answer.body) == b"a"
        await answer.body.aclose()
        await answer.body.aclose()
        await asyncio.wait_for(gone.wait(), 60)


async def test_a_stream_that_was_read_gives_its_connection_back():
    async with talking(always(OK)) as (client, server):
        for _ in range(2):
            answer = await get(client, stream=True)
            assert b"".join([chunk async for chunk in answer.body]) == b"ok"
        assert server.connections == 1


async def test_a_failure_is_whole_even_if_a_stream_was_asked_for():
    async with talking(always(b"HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone")) as (client, _):
        answer = await get(client, stream=True)
        assert (answer.status, answer.body) == (410, b"gone")


async def test_a_slow_reader_holds_the_server_back():
    sent = 0

    async def serve(server, reader, writer):
        nonlocal sent
        await server.request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(2000):
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    async with talking(serve) as (client, _):
        answer = await get(client, stream=True)
        await anext(answer.body)
        await asyncio.sleep(0.5)
        assert sent < 100 * 1024 * 1024
        size = 0
        async for chunk in answer.body:
            size += len(chunk)
        assert size > 100 * 1024 * 1024


async def test_headers_cannot_be_smuggled_in():
    async with talking(always(OK)) as (client, server):
        with pytest.raises(errors.InvalidInput):
            await client.request("GET", "/a b", {}, b"")
        with pytest.raises(errors.InvalidInput):
            await client.request("GET", "/", {"x": "1\r\ny: 2"}, b"")
        assert not server.requests


class Changing:
    """Other credentials each time they are refused."""

    def __init__(self, *tokens):
        self.tokens = list(tokens)

    async def current(self):
        return Credential(token=self.tokens[0])

    def refused(self, credential):
        self.tokens.pop(0)
        return bool(self.tokens)


async def test_a_refused_token_is_asked_for_anew_once():
    async def serve(server, reader, writer):
        while True:
            head = await server.request(reader)
            good = "Bearer new" in head
            writer.write(OK if good else b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")

    async with talking(serve, credential=Changing("old", "new")) as (client, _):
        assert (await get(client)).status == 200
    async with talking(serve, credential=Changing("old", "bad", "new")) as (client, server):
        assert (await get(client)).status == 401
        assert len(server.requests) == 2


async def test_many_that_are_refused_at_once_ask_for_one_new_token():
    class Counting:
        asked, token = 0, "old"

        async def current(self):
            return Credential(token=self.token)

        def refused(self, credential):
            if credential.token == self.token:
                self.asked, self.token = self.asked + 1, "new"
            return True

    async def serve(server, reader, writer):
        while True:
            head = await server.request(reader)
            await asyncio.sleep(0.05)
            writer.write(OK if "Bearer new" in head else b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")

    credential = Counting()
    async with talking(serve, credential=credential) as (client, _):
        answers = await asyncio.gather(*(get(client) for _ in range(10)))
        assert {answer.status for answer in answers} == {200}
        assert credential.asked == 1


# -- TLS ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority():
    return certificates.authority("test", now=time.time())


def serving(pair, directory, authority=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name, content in (("crt", pair.certificate), ("key", pair.key)):
        (directory / name).write_bytes(content)
    context.load_cert_chain(directory / "crt", directory / "key")
    if authority:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.certificate.decode())
    return context


async def test_the_server_is_checked(authority, tmp_path):
    server = certificates.server("s", ["127.0.0.1"], authority, now=time.time())
    other = certificates.authority("other", now=time.time()).certificate.decode()
    mine = authority.certificate.decode()
    async with talking(always(OK), tls=serving(server, tmp_path), authority=mine) as (client, _):
        assert (await get(client)).body == b"ok"
    async with talking(always(OK), tls=serving(server, tmp_path), authority=other) as (client, _):
        with pytest.raises(errors.Unavailable, match="certificate verify failed"):
            await get(client)
    async with talking(always(OK), tls=serving(server, tmp_path), authority=mine, server_name="who") as (client, _):
        with pytest.raises(errors.Unavailable, match="certificate"):
            await get(client)
    async with talking(always(OK), tls=serving(server, tmp_path), insecure=True) as (client, _):
        assert (await get(client)).body == b"ok"


async def test_what_is_urgent_waits_neither_for_others_nor_for_a_server_that_is_slow_to_them(authority, tmp_path):
    answered = asyncio.Event()

    async def serve(server, reader, writer):
        while True:
            if "/slow" in await server.request(reader):
                await answered.wait()
            writer.write(OK)
            await writer.drain()

    server = certificates.server("s", ["127.0.0.1"], authority, now=time.time())
    mine, tls = authority.certificate.decode(), serving(server, tmp_path)
    async with talking(serve, tls=tls, authority=mine, limits=Limits(connections=3, urgent=2)) as (client, counted):
        bulk = [asyncio.create_task(client.request("GET", "/slow", {}, b"")) for _ in range(12)]
        while len(counted.requests) < 3:
            await asyncio.sleep(0.01)
        async with asyncio.timeout(60):
            for _ in range(5):
                assert (await get(client.urgent)).body == b"ok"
            await asyncio.gather(*(get(client.urgent) for _ in range(6)))
        assert not any(task.done() for task in bulk)
        assert counted.connections == 3 + 2
        answered.set()
        assert [answer.body for answer in await asyncio.gather(*bulk)] == [b"ok"] * 12
        assert counted.connections == 3 + 2
        client.close()
        with pytest.raises(errors.Unavailable, match="closed"):
            await get(client.urgent)


async def test_a_client_certificate_is_shown_and_a_new_one_from_then_on(authority, tmp_path):
    server = certificates.server("s", ["127.0.0.1"], authority, now=time.time())
    shown = []

    async def serve(server, reader, writer):
        peer = writer.get_extra_info("peercert")
        while True:
            await server.request(reader)
            shown.append(dict(pair[0] for pair in peer["subject"])["commonName"])
            writer.write(OK)

    class Two:
        names = ["one", "one", "two"]
        pairs = {name: certificates.client(name, ["g"], authority, now=time.time()) for name in ("one", "two")}

        async def current(self):
            pair = self.pairs[self.names.pop(0)]
            return Credential(certificate=pair.certificate.decode(), key=pair.key.decode())

        def refused(self, credential):
            return False

    mine, tls = authority.certificate.decode(), serving(server, tmp_path, authority)
    async with talking(serve, tls=tls, authority=mine, credential=Two()) as (client, counted):
        for _ in range(3):
            await get(client)
        assert (shown, counted.connections) == (["one", "one", "two"], 2)


def test_what_is_no_certificate_is_told():
    from lastcall.adapters.kube.tls import client_context

    with pytest.raises(errors.InvalidInput, match="certificate authority"):
        client_context("hello")
    with pytest.raises(errors.InvalidInput, match="client certificate"):
        client_context(insecure=True, certificate="hello", key="you")


@pytest.mark.parametrize("url", ["ftp://x", "https://", "https://x:port", "https://x?y=1"])
def test_a_url_that_is_none(url):
    with pytest.raises(errors.InvalidInput):
        Endpoint.of(url)
