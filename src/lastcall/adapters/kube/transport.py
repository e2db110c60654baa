"""The transport of requests to an API server: HTTPS (``https_transport.py``), or calls within the process (lab)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, Self

JSON = "application/json"


class Chunks(Protocol):
    """A body in parts. Read it to its end or close it; raises Unavailable if it breaks off."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> bytes: ...

    async def aclose(self) -> None:
        """Discards the unread rest. May be called twice, also after the end."""
        ...


@dataclass(frozen=True)
class ApiResponse:
    """An answer; ``body`` is whole or in chunks. Header names are lower case; repeated headers are joined by ", "."""

    status: int
    headers: Mapping[str, str]
    body: bytes | Chunks


class Transport(Protocol):
    """The connection to one API server."""

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """Sends a request. With ``stream``, the body of a success comes in chunks; else it is whole.

        ``target`` is path and query. Raises Unavailable if the server cannot be reached, or if no whole answer came in
        time. Every HTTP status is an answer. Cancelling aborts the request.
        """
        ...

    def close(self) -> None:
        """Closes all connections. May be called twice."""
        ...
