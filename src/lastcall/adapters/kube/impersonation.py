"""Requests as another user: the API server permits them by the right to ``impersonate`` him, and audits both."""

from collections.abc import Mapping

from lastcall.adapters.kube.transport import ApiResponse, Transport


class ImpersonatingTransport:
    """``transport.Transport`` whose requests are those of ``username``; closing it closes nothing."""

    def __init__(self, transport: Transport, username: str) -> None:
        self._transport = transport
        self._username = username

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """``Transport.request``."""
        named = {**headers, "impersonate-user": self._username}
        return await self._transport.request(method, target, named, body, stream=stream)

    def close(self) -> None:
        """Leaves the connections to their owner."""
