"""The head of a request that a parser has read: clients repeat it, and need not be parsed again (no I/O)."""

import re
from typing import NamedTuple, Self

_MOST_DIGITS = 9

_find_length = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})\r\n", re.IGNORECASE).finditer


class RepeatedHead(NamedTuple):
    """All bytes of a head but the digits of Content-Length, and the target that it names.

    Whatever stands around them is what the parser has accepted, so that other digits change the length alone.
    """

    before: bytes
    after: bytes
    path: str
    query: str

    @classmethod
    def learn(cls, data: bytes, length: bytes, path: str, query: str) -> Self | None:
        """Of the request with which ``data`` begins, whose only Content-Length the parser has read as ``length``.

        None if the head is not whole, or the place of the length is not certain.
        """
        end = data.find(b"\r\n\r\n")
        places = list(_find_length(data, 0, end + 2)) if end >= 0 else []
        if len(places) != 1 or places[0][1] != length:
            return None
        begin, behind = places[0].span(1)
        return cls(data[:begin], data[behind : end + 4], path, query)

    def find_body(self, data: bytes) -> tuple[int, int] | None:
        """Where the body begins and ends if ``data`` begins with this head; the end may be behind that of the data."""
        if not data.startswith(self.before):
            return None
        begin = len(self.before)
        behind = data.find(b"\r", begin, begin + _MOST_DIGITS + 1)
        digits = data[begin:behind]
        if behind < 0 or not digits.isdigit() or not data.startswith(self.after, behind):
            return None
        begin = behind + len(self.after)
        return begin, begin + int(digits)
