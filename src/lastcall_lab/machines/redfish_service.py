"""The BMCs of the lab's machines as a Redfish service (DMTF DSP0266), as far as fencing programs use it.

Each machine is a member of ``/redfish/v1/Systems`` under its node's name. Each request needs user and password (HTTP
Basic); the lab's own tokens are not accepted.
"""

import base64
import binascii
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from lastcall.errors import InvalidInput, LastcallError, TimedOut
from lastcall_lab.apiserver.values.request import Request, Response
from lastcall_lab.machines.bmc import Bmc

PREFIX = "/redfish"
USER = "lab-bmc"
_ROOT = f"{PREFIX}/v1"
_SYSTEMS = f"{_ROOT}/Systems"
_RESETS = {"On": True, "ForceOff": False}
"""Resource.ResetType: the power state that each value results in."""


class RedfishMachines(Protocol):
    """The lab's machines by their BMCs."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the machines and their nodes."""
        ...

    def bmc(self, node: str) -> Bmc:
        """The BMC of a machine; InvalidInput if there is no such machine."""
        ...

    async def switch_by_bmc(self, node: str, *, on: bool) -> None:
        """Asks the BMC to switch, and returns when it reports success; raises InvalidInput, or TimedOut."""
        ...


@dataclass(frozen=True)
class RedfishService:
    """Handles requests whose path begins with ``/redfish``."""

    machines: RedfishMachines
    password: str

    async def handle(self, request: Request) -> Response:
        """Returns the answer; never raises."""
        path = request.path.rstrip("/")
        if path not in (PREFIX, _ROOT) and not self._is_authorized(request):
            return _error_response(401, "NoValidSession", "there is no user of that name and password")
        try:
            return await self._route(request.method, path.removeprefix(PREFIX).split("/")[1:], request.body)
        except TimedOut as error:
            return _error_response(504, "GeneralError", str(error))
        except InvalidInput as error:
            return _error_response(404, "ResourceMissingAtURI", str(error))
        except LastcallError as error:
            return _error_response(503, "ServiceTemporarilyUnavailable", str(error))

    async def _route(self, method: str, path: Sequence[str], body: bytes) -> Response:
        match method, path:
            case "GET", []:
                return _json_response({"v1": f"{_ROOT}/"})
            case "GET", ["v1"]:
                return _json_response(_service_root())
            case "GET", ["v1", "Systems"]:
                return _json_response(_system_collection(self.machines.names))
            case "GET", ["v1", "Systems", name]:
                return _json_response(await _computer_system(name, self.machines.bmc(name)))
            case "POST", ["v1", "Systems", name, "Actions", "ComputerSystem.Reset"]:
                return await self._reset_system(name, body)
            case _:
                return _error_response(404, "ResourceMissingAtURI", f"there is no {method} {PREFIX}/{'/'.join(path)}")

    async def _reset_system(self, name: str, body: bytes) -> Response:
        try:
            wanted = msgspec.json.decode(body)["ResetType"]
            on = _RESETS[wanted]
        except (msgspec.DecodeError, KeyError, TypeError):
            return _error_response(400, "ActionParameterNotSupported", f"ResetType must be one of {', '.join(_RESETS)}")
        await self.machines.switch_by_bmc(name, on=on)
        return Response(204, {}, b"")

    def _is_authorized(self, request: Request) -> bool:
        kind, _, told = request.headers.get("authorization", "").partition(" ")
        try:
            user, _, password = base64.b64decode(told, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        return kind == "Basic" and user == USER and hmac.compare_digest(password.encode(), self.password.encode())


def _service_root() -> dict[str, Any]:
    return {
        "@odata.id": f"{_ROOT}/",
        "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
        "Id": "RootService",
        "Name": "lastcall lab",
        "RedfishVersion": "1.15.0",
        "Systems": {"@odata.id": _SYSTEMS},
    }


def _system_collection(names: Sequence[str]) -> dict[str, Any]:
    return {
        "@odata.id": _SYSTEMS,
        "@odata.type": "#ComputerSystemCollection.ComputerSystemCollection",
        "Name": "the lab's machines",
        "Members@odata.count": len(names),
        "Members": [{"@odata.id": f"{_SYSTEMS}/{name}"} for name in names],
    }


async def _computer_system(name: str, bmc: Bmc) -> dict[str, Any]:
    powered = await bmc.is_powered()
    here = f"{_SYSTEMS}/{name}"
    return {
        "@odata.id": here,
        "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
        "Id": name,
        "Name": name,
        "SystemType": "Physical",
        "UUID": bmc.uuid,
        "PowerState": "On" if powered else "Off",
        "Status": {"State": "Enabled" if powered else "Disabled", "Health": "OK"},
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": f"{here}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": list(_RESETS),
            }
        },
    }


def _json_response(content: Any) -> Response:
    return Response(200, {"content-type": "application/json", "odata-version": "4.0"}, msgspec.json.encode(content))


def _error_response(code: int, what: str, why: str) -> Response:
    """An error in the specification's format (DSP0266, extended error responses)."""
    told = {"code": f"Base.1.15.{what}", "message": why, "@Message.ExtendedInfo": []}
    headers: dict[str, str | list[str]] = {"content-type": "application/json", "odata-version": "4.0"}
    if code == 401:
        headers["www-authenticate"] = 'Basic realm="BMC"'
    return Response(code, headers, msgspec.json.encode({"error": told}))
