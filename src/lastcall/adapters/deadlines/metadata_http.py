"""A cloud's metadata service over plain HTTP/1.1, as ``ports.deadlines.MetadataService``.

One connection for each request, no redirect and no proxy: the address is link-local, and its answers are small.
"""

import asyncio
import email.utils
from collections.abc import Mapping
from urllib.parse import urlsplit

from lastcall.adapters.kube.http_connection import HttpConnection
from lastcall.aio import timeout
from lastcall.errors import Unavailable
from lastcall.ports.deadlines import MetadataAnswer

MOST_BYTES = 64 * 1024


class HttpMetadataService:
    """``endpoint`` is a URL of scheme http with host and port only."""

    def __init__(self, endpoint: str) -> None:
        parts = urlsplit(endpoint)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._name = parts.netloc

    async def request(
        self, method: str, path: str, headers: Mapping[str, str], *, body: bytes = b"", within: float
    ) -> MetadataAnswer:
        """``ports.deadlines.MetadataService.request``."""
        try:
            async with timeout(within):
                return await self._exchange(self._request_bytes(method, path, headers, body), within)
        except TimeoutError:
            raise Unavailable(f"{self._name} does not answer within {within:g} s") from None
        except OSError as error:
            raise Unavailable(f"{self._name} cannot be reached: {error.strerror or error}") from error

    def _request_bytes(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
        lines = {"Host": self._name, "Connection": "close", "Accept": "*/*", **headers}
        if body:
            lines |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body

    async def _exchange(self, request: bytes, within: float) -> MetadataAnswer:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: HttpConnection(self._name), self._host, self._port)
        try:
            connection.send(request, bodiless=False)
            await connection.wait_for_head(within)
            body = bytearray()
            async for chunk in connection.body_chunks():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise Unavailable(f"{self._name} answers more than {MOST_BYTES} bytes")
            headers = connection.headers
            return MetadataAnswer(
                status=connection.status,
                body=bytes(body),
                date=_parse_date(headers.get("date", "")),
                etag=headers.get("etag", ""),
            )
        finally:
            connection.abort()


def _parse_date(said: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(said).timestamp() if said else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
