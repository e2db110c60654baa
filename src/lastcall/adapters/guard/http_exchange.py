"""One request and its answer over HTTP/1.1 on a connection to a member, for answers that may be anything.

``adapters.kube.http_connection`` reads from a socket of its own and streams; here the connection is given, is used once,
and the answer is small. Redirects are answers like any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import httptools

from lastcall.errors import LastcallError, Unavailable
from lastcall.ports.guard import MemberStream

MOST_BODY = 64 * 1024
_MOST_HEAD = 16 * 1024
_MOST_BYTES = 8 * MOST_BODY
"""Of the whole answer: chunks of one byte each take six."""
_READ = 16 * 1024


class AnswerTooLarge(LastcallError):
    """There is an answer, and it is not read to its end."""


@dataclass(frozen=True, kw_only=True)
class HttpRequest:
    """A request without secrets in its ``title``, which messages name."""

    method: str
    target: str
    host: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = field(default=b"", repr=False)

    @property
    def title(self) -> str:
        """``POST /prepare``."""
        return f"{self.method} {self.target}"

    def encode(self) -> bytes:
        """The bytes on the wire. Compression is not asked for, and the connection is closed afterwards."""
        lines = [f"{self.method} {self.target} HTTP/1.1", f"host: {self.host}", "connection: close"]
        lines += ["accept: application/json", "accept-encoding: identity", "user-agent: lastcall-guard"]
        if self.method == "POST":
            lines += ["content-type: application/json", f"content-length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


class HttpAnswer:
    """An answer as it arrives, fed by the parser."""

    def __init__(self) -> None:
        self.status = 0
        self.is_complete = False
        self.body = bytearray()
        self._headers: dict[str, str] = {}
        self._parser = httptools.HttpResponseParser(self)
        self._head_size = 0
        self._head_done = False

    def feed(self, data: bytes) -> None:
        """More bytes. LastcallError if it is too large or compressed, Unavailable if it is not HTTP."""
        if not self._head_done:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise Unavailable(f"the answer is not HTTP/1.1: {error}") from error
        if not self._head_done and self._head_size > _MOST_HEAD:
            raise LastcallError(f"the answer's headers have more than {_MOST_HEAD} bytes")
        if len(self.body) > MOST_BODY:
            raise AnswerTooLarge(f"the answer has more than {MOST_BODY} bytes")
        if self._headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            raise LastcallError(f"the answer is compressed ({self._headers['content-encoding'][:20]!r})")

    def end(self) -> None:
        """The member has closed the connection: an answer of unknown length is complete."""
        if self._head_done and not {"content-length", "transfer-encoding"} & self._headers.keys():
            self.is_complete = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header (httptools)."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is whole; an interim answer (1xx) is passed over (httptools)."""
        status = self._parser.get_status_code()
        if status < 200:
            self._headers = {}
        else:
            self.status, self._head_done = status, True

    def on_body(self, body: bytes) -> None:
        """A part of the body (httptools)."""
        self.body += body

    def on_message_complete(self) -> None:
        """The answer is whole (httptools)."""
        self.is_complete = self._head_done


async def exchange(stream: MemberStream, request: HttpRequest) -> HttpAnswer:
    """Sends the request and reads its answer. The caller limits the time, and closes the connection.

    Unavailable if there is no whole answer; LastcallError if there is one that is not read: too large, or compressed.
    """
    await stream.write(request.encode())
    answer, size = HttpAnswer(), 0
    while not answer.is_complete:
        data = await stream.read(_READ)
        if not data:
            answer.end()
            break
        size += len(data)
        answer.feed(data)
        if size > _MOST_BYTES:
            raise AnswerTooLarge(f"the answer has more than {_MOST_BYTES} bytes")
    if not answer.is_complete:
        raise Unavailable("the connection was closed before the answer was complete")
    return answer
