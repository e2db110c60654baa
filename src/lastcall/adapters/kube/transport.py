"""What carries requests to an API server: HTTPS (``http.py``), or a call within the process (the lab)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, Self

JSON = "application/json"


class Chunks(Protocol):
    """A body as it comes. It is read to its end, or closed; Unavailable if it stops before its end."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> bytes: ...

    async def aclose(self) -> None:
        """Gives up what has not been read. May be called twice, also after the end."""
        ...


@dataclass(frozen=True)
class ApiResponse:
    """``body`` is whole, or comes in chunks; header names are lower case, a repeated header is joined by ", "."""

    status: int
    headers: Mapping[str, str]
    body: bytes | Chunks


class Transport(Protocol):
    """One API server."""

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """One answer. With ``stream`` the body of a success is chunks; else it is whole.

        ``target`` is path and query. Unavailable if the server cannot be reached, or if no whole answer came in time.
        Every HTTP status is an answer. Cancelling gives the request up.
        """
        ...

    def close(self) -> None:
        """Gives up all connections. May be called twice."""
        ...
