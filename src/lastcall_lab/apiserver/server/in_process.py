"""In-process requests to the lab's API server, so that the same programs run in virtual time."""

from collections.abc import Iterator, Mapping

from lastcall.adapters.kube.transport import ApiResponse
from lastcall.errors import Unavailable
from lastcall_lab.apiserver.server.api_server import ApiServer
from lastcall_lab.apiserver.values.request import ADMIN, Request, UserInfo


class InProcessTransport:
    """``transport.Transport`` directly into the server, as ``user``."""

    def __init__(self, server: ApiServer, user: UserInfo = ADMIN) -> None:
        self._server = server
        self._user = user
        self._closed = False

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """One response."""
        if self._closed:
            raise Unavailable("the client is closed")
        request = Request.of(method, target, headers=dict(headers), body=body, user=self._user)
        response = await self._server.handle(request)
        joined = {
            name: value if isinstance(value, str) else ", ".join(value) for name, value in response.headers.items()
        }
        said = b"".join(response.body) if isinstance(response.body, Iterator) else response.body
        return ApiResponse(response.status, joined, said)  # type: ignore[arg-type]  # a stream has aclose

    def close(self) -> None:
        """Stops responding."""
        self._closed = True
