"""The lab's own pages beside the API: what it consists of, its power switches, its BMCs, its end. Same door, same tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from lastcall.errors import InvalidInput, TimedOut
from lastcall.lab import redfish
from lastcall.lab.apiserver import answers, status
from lastcall.lab.apiserver.front import Handler
from lastcall.lab.apiserver.request import Request, Response
from lastcall.lab.redfish import Redfish

PREFIX = "/lab/"


class Machines(redfish.Machines, Protocol):
    """The lab's nodes as machines."""

    def status(self) -> Sequence[dict[str, Any]]:
        """One line for each: name, power, and what else people want to know."""
        ...

    async def switch(self, node: str, to: str) -> None:
        """Turns a machine's switch; InvalidInput if there is no such machine, or no such position."""
        ...


@dataclass
class Pages:
    """Answers what begins with ``/lab/`` or ``/redfish``, and leaves the rest to the API server."""

    api: Handler
    permitted: Callable[[Request], Request]
    machines: Machines
    stop: Callable[[], None]
    redfish: Redfish

    async def handle(self, request: Request) -> Response:
        """The answer; never an exception."""
        if request.path.startswith(redfish.PREFIX):
            return await self.redfish.handle(request)
        if not request.path.startswith(PREFIX):
            return await self.api.handle(request)
        try:
            self.permitted(request)
            return await self._own(request)
        except status.ApiError as error:
            return answers.failure(request, error)
        except InvalidInput as error:
            return answers.failure(request, status.bad_request(str(error)))
        except TimedOut as error:
            return answers.failure(request, status.ApiError(504, "Timeout", str(error)))

    async def _own(self, request: Request) -> Response:
        match request.method, request.path.removeprefix(PREFIX).split("/"):
            case "GET", ["status"]:
                return _json({"nodes": list(self.machines.status())})
            case "POST", ["power", node]:
                await self.machines.switch(node, request.parameter("to"))
                return _json({"nodes": [one for one in self.machines.status() if one["name"] == node]})
            case "GET", ["bmc", node]:
                powered = await self.machines.bmc(node).powered()
                return self._bmc(node, answers="on" if powered else "off")
            case "POST", ["bmc", node]:
                self._spoil(node, {name: values[0] for name, values in request.query.items()})
                return self._bmc(node)
            case "POST", ["bmc", node, "on" | "off" as to]:
                await self.machines.switch_by_bmc(node, on=to == "on")
                return self._bmc(node)
            case "GET", ["redfish"]:
                return _json({"username": redfish.USER, "password": self.redfish.password})
            case "POST", ["down"]:
                self.stop()
                return _json({})
            case _:
                return answers.page_not_found()

    def _spoil(self, node: str, faults: dict[str, str]) -> None:
        """One that is wired to its own machine is as it should be."""
        bmc = self.machines.bmc(node)
        if "wired" in faults:
            self.machines.bmc(faults["wired"])
            faults["wired"] = "" if faults["wired"] == node else faults["wired"]
        bmc.faults = bmc.faults.told(faults)

    def _bmc(self, node: str, **said: str) -> Response:
        return _json({"nodes": [{"name": node, **said, "bmcFaults": self.machines.bmc(node).faults.words()}]})


def _json(content: Any) -> Response:
    return Response(200, {"content-type": "application/json"}, msgspec.json.encode(content) + b"\n")
