"""The lab's own pages beside the API, at the same address and with the same tokens.

They show its machines, turn their power switches, set their BMCs' faults, give further kubelets their identity, and end
the lab.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from lastcall.errors import InvalidInput, TimedOut
from lastcall_lab.apiserver.responses import response_builder
from lastcall_lab.apiserver.server.http_server import RequestHandler
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Request, Response
from lastcall_lab.machines import redfish_service
from lastcall_lab.machines.redfish_service import RedfishService

PREFIX = "/lab/"


class LabMachines(redfish_service.RedfishMachines, Protocol):
    """The lab's nodes as machines."""

    def status(self) -> Sequence[dict[str, Any]]:
        """A row for each machine: name, power, and further facts for people."""
        ...

    async def switch(self, node: str, to: str) -> None:
        """Turns a machine's switch; InvalidInput if there is no such machine, or no such position."""
        ...


@dataclass
class LabPages:
    """Handles paths that begin with ``/lab/`` or ``/redfish``, and passes others to the API server."""

    api: RequestHandler
    permitted: Callable[[Request], Request]
    machines: LabMachines
    stop: Callable[[], None]
    redfish: RedfishService
    join_node: Callable[[str], dict[str, str]]
    """Returns what the kubelet of a node needs to reach the API server: url, authority (PEM), token."""

    async def handle(self, request: Request) -> Response:
        """Returns the answer; never raises."""
        if request.path.startswith(redfish_service.PREFIX):
            return await self.redfish.handle(request)
        if not request.path.startswith(PREFIX):
            return await self.api.handle(request)
        try:
            self.permitted(request)
            return await self._answer_own_page(request)
        except api_errors.ApiError as error:
            return response_builder.error_response(request, error)
        except InvalidInput as error:
            return response_builder.error_response(request, api_errors.bad_request_error(str(error)))
        except TimedOut as error:
            return response_builder.error_response(request, api_errors.ApiError(504, "Timeout", str(error)))

    async def _answer_own_page(self, request: Request) -> Response:
        match request.method, request.path.removeprefix(PREFIX).split("/"):
            case "GET", ["status"]:
                return _json_response({"nodes": list(self.machines.status())})
            case "POST", ["power", node]:
                await self.machines.switch(node, request.parameter("to"))
                return _json_response({"nodes": [one for one in self.machines.status() if one["name"] == node]})
            case "GET", ["bmc", node]:
                powered = await self.machines.bmc(node).is_powered()
                return self._bmc_answer(node, answers="on" if powered else "off")
            case "POST", ["bmc", node]:
                self._set_bmc_faults(node, {name: values[0] for name, values in request.query.items()})
                return self._bmc_answer(node)
            case "POST", ["bmc", node, "on" | "off" as to]:
                await self.machines.switch_by_bmc(node, on=to == "on")
                return self._bmc_answer(node)
            case "GET", ["redfish"]:
                return _json_response({"username": redfish_service.USER, "password": self.redfish.password})
            case "POST", ["kubelet", node]:
                return _json_response(self.join_node(node))
            case "POST", ["down"]:
                self.stop()
                return _json_response({})
            case _:
                return response_builder.not_found_page()

    def _set_bmc_faults(self, node: str, faults: dict[str, str]) -> None:
        """Sets the faults; wiring a BMC to its own machine removes that fault."""
        bmc = self.machines.bmc(node)
        if "wired" in faults:
            self.machines.bmc(faults["wired"])
            faults["wired"] = "" if faults["wired"] == node else faults["wired"]
        bmc.faults = bmc.faults.with_values(faults)

    def _bmc_answer(self, node: str, **said: str) -> Response:
        return _json_response(
            {"nodes": [{"name": node, **said, "bmcFaults": self.machines.bmc(node).faults.describe()}]}
        )


def _json_response(content: Any) -> Response:
    return Response(200, {"content-type": "application/json"}, msgspec.json.encode(content) + b"\n")
