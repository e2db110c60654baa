"""The lab's own pages beside the API: what it consists of, its power switches, its end. Same door, same tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from lastcall.errors import InvalidInput
from lastcall.lab.apiserver import answers, status
from lastcall.lab.apiserver.front import Handler
from lastcall.lab.apiserver.request import Request, Response

PREFIX = "/lab/"


class Machines(Protocol):
    """The lab's nodes as machines."""

    def status(self) -> Sequence[dict[str, Any]]:
        """One line for each: name, power, and what else people want to know."""
        ...

    async def switch(self, node: str, to: str) -> None:
        """Turns a machine's switch; InvalidInput if there is no such machine, or no such position."""
        ...


@dataclass
class Pages:
    """Answers what begins with ``/lab/``, and leaves the rest to the API server."""

    api: Handler
    authenticated: Callable[[Request], Request]
    machines: Machines
    stop: Callable[[], None]

    async def handle(self, request: Request) -> Response:
        """The answer; never an exception."""
        if not request.path.startswith(PREFIX):
            return await self.api.handle(request)
        try:
            self.authenticated(request)
            return await self._own(request)
        except status.ApiError as error:
            return answers.failure(request, error)
        except InvalidInput as error:
            return answers.failure(request, status.bad_request(str(error)))

    async def _own(self, request: Request) -> Response:
        match request.method, request.path.removeprefix(PREFIX).split("/"):
            case "GET", ["status"]:
                return _json({"nodes": list(self.machines.status())})
            case "POST", ["power", node]:
                await self.machines.switch(node, request.parameter("to"))
                return _json({"nodes": [one for one in self.machines.status() if one["name"] == node]})
            case "POST", ["down"]:
                self.stop()
                return _json({})
            case _:
                return answers.page_not_found()


def _json(content: Any) -> Response:
    return Response(200, {"content-type": "application/json"}, msgspec.json.encode(content) + b"\n")
