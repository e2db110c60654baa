"""The HTTP client against servers that misbehave, on raw sockets."""

import asyncio

import pytest
from support.kube.raw_http import OK, always, get, talking

from lastcall import errors
from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.https_transport import HttpsTransport, ServerEndpoint, TransportLimits
from lastcall.aio import cancel_and_wait


async def test_a_connection_is_used_again_and_says_what_it_must():
    async with talking(always(OK), credential=StaticCredentials(Credential(token="t"))) as (client, server):
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

    async with talking(serve, limits=TransportLimits(connections=3)) as (client, server):
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

    async with talking(serve, limits=TransportLimits(body=1000)) as (client, _):
        with pytest.raises(errors.Unavailable, match=said):
            await get(client)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "gave no answer in 1.5 s"),
        (b"HTTP/1.1 200 OK\r\nCont", "gave no answer in 1.5 s"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", "in the middle"),
    ],
)
async def test_silence_is_unavailable(answer, said):
    async def serve(server, reader, writer):
        await server.request(reader)
        writer.write(answer)
        await reader.read()

    async with talking(serve, limits=TransportLimits(answer=1.5, inactivity=1.5)) as (client, _):
        with pytest.raises(errors.Unavailable, match=said):
            await get(client)


async def test_nobody_there():
    async with talking(always(OK)) as (client, _):
        pass
    with pytest.raises(errors.Unavailable, match="closed"):
        await get(client)
    nobody = HttpsTransport(ServerEndpoint.from_url("http://127.0.0.1:1"), StaticCredentials(Credential()))
    with pytest.raises(errors.NotConnected, match="^127.0.0.1:1: Connection refused$"):
        await get(nobody)


async def test_cancelling_gives_the_connection_up():
    asked, gone = asyncio.Event(), asyncio.Event()

    async def serve(server, reader, writer):
        await server.request(reader)
        asked.set()
        await reader.read()
        gone.set()

    async with talking(serve) as (client, _):
        getting = asyncio.create_task(get(client))
        await asyncio.wait_for(asked.wait(), 60)
        await cancel_and_wait(getting)
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

    async with talking(serve, limits=TransportLimits(answer=2.0)) as (client, server):
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

    async def current_credential(self):
        return Credential(token=self.tokens[0])

    def mark_refused(self, credential):
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

        async def current_credential(self):
            return Credential(token=self.token)

        def mark_refused(self, credential):
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


@pytest.mark.parametrize("url", ["ftp://x", "https://", "https://x:port", "https://x?y=1"])
def test_a_url_that_is_none(url):
    with pytest.raises(errors.InvalidInput):
        ServerEndpoint.from_url(url)
