"""A request whose head is known is the same as one that is parsed, whatever comes and in whatever pieces."""

import httptools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lastcall.adapters.webhook.http_exchange import HttpExchange

MOST_HEAD, MOST_BODY = 400, 60


def request(
    body=b"{}", *, target="/review?timeout=5s", length=None, more="", kind="application/json", name="Content-Length"
):
    length = len(body) if length is None else length
    head = f"POST {target} HTTP/1.1\r\nHost: a\r\nContent-Type: {kind}\r\n{name}: {length}\r\n{more}\r\n"
    return head.encode() + body


def outcome(pieces, *, forgets=False):
    """The requests, whether one is under way, and the refusal. ``forgets``: no head is known."""
    exchange = HttpExchange(MOST_HEAD, MOST_BODY)
    found = []
    for piece in pieces:
        exchange.feed(piece)
        while one := exchange.take_request():
            found.append(one)
        if forgets:
            exchange._repeated = None
    return found, exchange.is_receiving, exchange.refusal


class CountedParser:
    """How many bytes reach the parser."""

    def __init__(self, monkeypatch):
        self.bytes = 0
        real, counted = httptools.HttpRequestParser, self

        class Parser:
            def __init__(self, protocol):
                self._real = real(protocol)

            def __getattr__(self, name):
                return getattr(self._real, name)

            def feed_data(self, data):
                counted.bytes += len(data)
                self._real.feed_data(data)

        monkeypatch.setattr(httptools, "HttpRequestParser", Parser)


def test_a_head_is_parsed_once(monkeypatch):
    counted = CountedParser(monkeypatch)
    first = request()
    found, _, _ = outcome([first, request(b"x" * 17), request(b"y" * 5)[:70], request(b"y" * 5)[70:]])
    assert [one.body for one in found] == [b"{}", b"x" * 17, b"y" * 5]
    assert {(one.path, one.query, one.keeps_alive) for one in found} == {("/review", "timeout=5s", True)}
    assert counted.bytes == len(first) + len(request(b"y" * 5)), "what ends within the head is parsed"


def test_a_body_in_pieces_does_not_reach_the_parser(monkeypatch):
    counted = CountedParser(monkeypatch)
    first, second = request(), request(b"abcdefgh")
    exchange = HttpExchange(MOST_HEAD, MOST_BODY)
    exchange.feed(first)
    assert exchange.take_request()
    for piece in (second[:-6], second[-6:-3], second[-3:] + second):
        exchange.feed(piece)
        assert exchange.is_receiving == (piece in (second[:-6], second[-6:-3]))
    assert [exchange.take_request().body for _ in range(2)] == [b"abcdefgh"] * 2
    assert counted.bytes == len(first)


def test_a_head_whose_body_came_later_is_parsed_once(monkeypatch):
    counted = CountedParser(monkeypatch)
    first = request(b"abcdefgh")
    found, _, _ = outcome([first[:-6], first[-6:-3], first[-3:], request(b"y" * 5)])
    assert [one.body for one in found] == [b"abcdefgh", b"y" * 5]
    assert counted.bytes == len(first)


@pytest.mark.parametrize(
    "other",
    [
        request(target="/other"),
        request(more="X: 1\r\n"),
        request(more="Connection: close\r\n"),
        request(kind="text/plain"),
        request(b"x" * (MOST_BODY + 1)),
        request(length="99999999999999999999"),
        request(length="+2"),
        request(length="2 "),
        request(length=""),
        request(name="X-Content-Length"),
        request(more="Content-Length: 2\r\n"),
        request(more="Transfer-Encoding: chunked\r\n"),
        request().replace(b"POST", b"GET "),
        request().replace(b"\r\n", b"\n"),
    ],
)
def test_another_head_is_parsed(other):
    assert outcome([request(), other, request()]) == outcome([request(), other, request()], forgets=True)


@pytest.mark.parametrize(
    "pieces",
    [
        [request(more="Connection: close\r\n")] * 2,
        [request(target="/settle") + request(), request(target="/settle"), request()],
    ],
    ids=["the last one twice", "two at once"],
)
def test_a_head_is_known_by_what_it_says_itself(pieces):
    assert outcome(pieces) == outcome(pieces, forgets=True)


REQUESTS = st.builds(
    request,
    st.binary(max_size=MOST_BODY + 2),
    target=st.sampled_from(["/review?timeout=5s", "/settle"]),
    length=st.sampled_from([None] * 6 + [0, 1, "07", "-1", "x", "3\r\nContent-Length: 3"]),
    more=st.sampled_from([""] * 6 + ["Connection: close\r\n", "X: y\r\n", "Transfer-Encoding: chunked\r\n", "\r\n"]),
    name=st.sampled_from(["Content-Length"] * 4 + ["content-length", "Content-Length ", "X-Length"]),
)


@given(
    st.lists(REQUESTS | st.binary(max_size=3) | st.just(b"\r\n"), max_size=6), st.lists(st.integers(0, 900), max_size=8)
)
@example([request(), request(), request()], [])
@example([request(more="Connection: close\r\n"), request()], [])
@example([request(), b"\r", request(b""), b"\r\n"], [])
def test_pieces_of_any_stream_say_what_the_parser_says(requests, cuts):
    stream = b"".join(requests)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[begin:end] for begin, end in zip(places, places[1:], strict=False)]
    assert outcome(pieces) == outcome(pieces, forgets=True)


@given(st.lists(REQUESTS, max_size=6))
def test_each_request_by_itself_says_what_the_parser_says(requests):
    assert outcome(requests) == outcome(requests, forgets=True)
