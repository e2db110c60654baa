"""Requests out of the bytes of one HTTP/1.1 connection, and the bytes of the answers (no I/O)."""

from collections import deque
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple, Self
from urllib.parse import parse_qs

import httptools

from lastcall.adapters.webhook.repeated_head import RepeatedHead

_KIND_LENGTH, _SIZE_LENGTH = len(b"content-type"), len(b"content-length")


class WebhookRequest(NamedTuple):
    """A POST request. ``peer`` is the common name of the client's verified certificate, "" without one."""

    path: str
    query: str
    body: bytes
    keeps_alive: bool = True
    peer: str = ""

    def from_peer(self, peer: str) -> Self:
        """The same request of a named client."""
        return self._replace(peer=peer) if peer else self

    @property
    def timeout_seconds(self) -> float | None:
        """How long the API server waits, by the query ``timeout=5s``; None if it does not say."""
        said = parse_qs(self.query).get("timeout", [""])[0].removesuffix("s")
        return float(said) if said.isdecimal() else None


class WebhookReply(NamedTuple):
    """An answer; JSON with status 200, otherwise a line of text."""

    status: int
    body: bytes

    def encode(self, *, close: bool) -> bytes:
        """Head and body as they are sent; ``close`` says that no answer follows on this connection."""
        return b"%s%d\r\n\r\n%s" % (_begin_head(self.status, close), len(self.body), self.body)


@lru_cache(maxsize=64)
def _begin_head(status: int, close: bool) -> bytes:
    kind = "application/json" if status == HTTPStatus.OK else "text/plain; charset=utf-8"
    return (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {kind}\r\n"
        f"{'Connection: close' if close else 'Connection: keep-alive'}\r\nContent-Length: "
    ).encode()


class HttpExchange:
    """The requests of one connection, in order. After a ``refusal`` nothing more is read.

    A request whose head is the last one's, but for the length, does not reach the parser.
    """

    def __init__(self, most_head: int, most_body: int) -> None:
        self._most_head = most_head
        self._most_body = most_body
        self._parser = httptools.HttpRequestParser(self)
        self._ready: deque[WebhookRequest] = deque()
        self._url = b""
        self._head = 0
        self._body: list[bytes] = []
        self._size = 0
        self._kind = b""
        self._in_head = True
        self._begin: bytes | None = None
        """What has begun with the request that is parsed; None if its head came in several pieces."""
        self._lengths: list[bytes] = []
        self._repeated: RepeatedHead | None = None
        self._missing = 0
        """Bytes of the body of a request that does not reach the parser."""
        self.is_receiving = False
        """Whether a request has begun and has not ended."""
        self.refusal: WebhookReply | None = None

    def feed(self, data: bytes) -> None:
        """Bytes from the client."""
        while data and not self.refusal and (self._missing or not self.is_receiving):
            if self._missing:
                data = self._add_body(data)
                continue
            data = data.lstrip(b"\r\n")  # empty lines between requests
            if (rest := self._begin_repeated(data)) is None:
                break
            data = rest
        if data and not self.refusal:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        if not self.is_receiving:
            self._begin = data
        elif self._in_head:
            self._begin = None
        self.is_receiving = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(HTTPStatus.BAD_REQUEST, "no upgrade")
        except httptools.HttpParserError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"not an HTTP request: {error}")
        if self._in_head and self.is_receiving:
            self._count_head(len(data))  # a line without an end is never shown

    def take_request(self) -> WebhookRequest | None:
        """The next whole request; None if there is none yet."""
        return self._ready.popleft() if self._ready else None

    # -- requests with a known head ------------------------------------------------------------------------------------

    def _begin_repeated(self, data: bytes) -> bytes | None:
        """What follows the request with which the data begins; None if its head has to be parsed."""
        found = self._repeated.find_body(data) if self._repeated else None
        if found is None or found[1] - found[0] > self._most_body:
            return None
        begin, end = found
        self._body, self._missing = [], end - begin
        self.is_receiving = True
        return self._add_body(data[begin:])

    def _add_body(self, data: bytes) -> bytes:
        """What follows the body."""
        mine, rest = (data, b"") if len(data) <= self._missing else (data[: self._missing], data[self._missing :])
        self._body.append(mine)
        self._missing -= len(mine)
        if not self._missing and self._repeated:
            self.is_receiving = False
            self._ready.append(WebhookRequest(self._repeated.path, self._repeated.query, self._take_body()))
        return rest

    # -- callbacks of the parser ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url, self._body, self._size, self._kind, self._head, self._lengths = b"", [], 0, b"", 0, []
        self._in_head = self.is_receiving = True

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._head += len(name) + len(value)
        if len(name) == _KIND_LENGTH and name.lower() == b"content-type":
            self._kind = value
        elif len(name) == _SIZE_LENGTH and name.lower() == b"content-length":
            self._check_length(value)
            self._lengths.append(value)

    def on_headers_complete(self) -> None:
        """The body follows."""
        self._count_head(0)
        self._in_head = False

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._size += len(body)
        if self._size > self._most_body:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {self._most_body} bytes")
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self.is_receiving, self._in_head = False, True
        if self.refusal:
            return
        if self._parser.get_method() != b"POST":
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only POST")
        elif self._kind.partition(b";")[0].strip().lower() != b"application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "only application/json")
        else:
            self._ready.append(self._request())
        self._begin = None  # the next request begins elsewhere

    def _check_length(self, value: bytes) -> None:
        if value.isdigit() and int(value) > self._most_body:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {self._most_body} bytes")

    def _count_head(self, size: int) -> None:
        self._head += size
        if self._head > self._most_head:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head of the request is too large")

    def _request(self) -> WebhookRequest:
        path, _, query = self._url.decode("latin-1").partition("?")
        keeps_alive = self._parser.should_keep_alive()
        self._repeated = self._learn_head(path, query) if keeps_alive else None
        return WebhookRequest(path=path, query=query, body=self._take_body(), keeps_alive=keeps_alive)

    def _learn_head(self, path: str, query: str) -> RepeatedHead | None:
        """None where the body does not have the one length that the head says."""
        if self._begin is None or len(self._lengths) != 1 or self._lengths[0] != str(self._size).encode():
            return None
        return RepeatedHead.learn(self._begin, self._lengths[0], path, query)

    def _take_body(self) -> bytes:
        pieces, self._body = self._body, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._body = []
        self.refusal = self.refusal or WebhookReply(status, f"{why}\n".encode())
