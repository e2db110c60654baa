"""Requests and responses of the API server, independent of their transport: HTTPS or an in-process call."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, unquote

Object = dict[str, Any]
"""A Kubernetes object, or a part of one, as JSON has it."""


@dataclass(frozen=True)
class UserInfo:
    """An authenticated user: name, groups and UID from a token or certificate."""

    name: str
    groups: Sequence[str] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def node(self) -> str:
        """The node of a kubelet user; empty for others."""
        return self.name.removeprefix("system:node:") if self.name.startswith("system:node:") else ""


ADMIN = UserInfo("kubernetes-admin", ("system:masters", "system:authenticated"))


@dataclass(frozen=True)
class Request:
    """One request. ``path`` is decoded, header names are lower case, ``query`` lists the values of each parameter."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: UserInfo = ADMIN
    annotations: dict[str, str] = field(default_factory=dict, compare=False)
    """Audit annotations that admission adds while the request is served."""

    @classmethod
    def of(cls, method: str, target: str, **rest: Any) -> "Request":
        """From the target of a request line: path and query."""
        path, _, query = target.partition("?")
        return cls(method, unquote(path), parse_query(query), **rest)

    def parameter(self, name: str) -> str:
        """The first value of a query parameter; empty if there is none."""
        values = self.query.get(name)
        return values[0] if values else ""

    def flag(self, name: str) -> bool:
        """A boolean parameter as Kubernetes parses it: true unless 0 or false, even without a value."""
        return name in self.query and self.parameter(name).lower() not in ("0", "false")


@lru_cache(maxsize=256)  # cached: a client sends the same few in all requests
def parse_query(query: str) -> Mapping[str, Sequence[str]]:
    """The values of each parameter of a query."""
    return parse_qs(query, keep_blank_values=True)


@dataclass
class Response:
    """``body`` is whole, in pieces encoded on demand, or a stream that its reader closes with ``aclose``.

    Header names are lower case.
    """

    status: int
    headers: dict[str, str | list[str]]
    body: bytes | Iterator[bytes] | AsyncIterator[bytes]
