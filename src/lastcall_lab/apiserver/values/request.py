"""What comes to the API server and what leaves it, whatever carries it: HTTPS, or a call within the process."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, unquote

Object = dict[str, Any]
"""A Kubernetes object, or a part of one, as JSON has it."""


@dataclass(frozen=True)
class UserInfo:
    """Who asks: name, groups and UID as tokens and certificates say them."""

    name: str
    groups: Sequence[str] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def node(self) -> str:
        """The node whose kubelet this is; empty for everybody else."""
        return self.name.removeprefix("system:node:") if self.name.startswith("system:node:") else ""


ADMIN = UserInfo("kubernetes-admin", ("system:masters", "system:authenticated"))


@dataclass(frozen=True)
class Request:
    """One request. ``path`` is decoded, header names are lower case, ``query`` has the values of each parameter."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: UserInfo = ADMIN
    annotations: dict[str, str] = field(default_factory=dict, compare=False)
    """What admission adds for the audit while the request is served."""

    @classmethod
    def of(cls, method: str, target: str, **rest: Any) -> "Request":
        """From a target as it stands in a request line: path and query."""
        path, _, query = target.partition("?")
        return cls(method, unquote(path), parse_query(query), **rest)

    def parameter(self, name: str) -> str:
        """The first value of a query parameter; empty if there is none."""
        values = self.query.get(name)
        return values[0] if values else ""

    def flag(self, name: str) -> bool:
        """A boolean query parameter as Kubernetes reads them: anything but 0 and false is true, so is no value."""
        return name in self.query and self.parameter(name).lower() not in ("0", "false")


@lru_cache(maxsize=256)  # a client has the same few in all its requests
def parse_query(query: str) -> Mapping[str, Sequence[str]]:
    """The values of each parameter of a query."""
    return parse_qs(query, keep_blank_values=True)


@dataclass
class Response:
    """``body`` is whole, or in pieces that are made as they are sent, or a stream that its reader closes with ``aclose``.

    Header names are lower case.
    """

    status: int
    headers: dict[str, str | list[str]]
    body: bytes | Iterator[bytes] | AsyncIterator[bytes]
