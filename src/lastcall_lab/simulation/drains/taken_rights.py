"""Rights that are taken from whoever drains: the API server refuses what needs them, in its words."""

from collections.abc import Callable, Mapping

import msgspec

from lastcall.adapters.kube.transport import ApiResponse, Transport
from lastcall_lab.apiserver.authorization.attributes import access_attributes, forbidden_error
from lastcall_lab.apiserver.values.request import Request, UserInfo

DRAINER = UserInfo("system:serviceaccount:default:drainer", ("system:authenticated",))
"""Who drains, as refusals call it."""


class TakenRights:
    """Rights as VERB RESOURCE, for instance ``create pods/eviction``. Watches that are open go on, as in Kubernetes.

    ``struck`` hears of each refusal: the right, and who has asked.
    """

    def __init__(self, struck: Callable[[str, str], None]) -> None:
        self._struck = struck
        self._taken: list[str] = []
        self._refused: set[tuple[str, str]] = set()

    def take(self, right: str) -> None:
        """Takes a right."""
        self._taken.append(right)

    def give_back(self, right: str) -> None:
        """Gives it back."""
        self._taken.remove(right)

    def lacks(self, right: str) -> bool:
        """Whether it is taken."""
        return right in self._taken

    def refuse(self, right: str, program: str) -> None:
        """Records a refusal."""
        self._refused.add((right, program))
        self._struck(right, program)

    def has_refused(self, resource: str, program: str) -> bool:
        """Whether a program was ever refused something of a resource."""
        return any(right.endswith(f" {resource}") and who == program for right, who in self._refused)


class RightsTransport:
    """``transport.Transport`` of one program."""

    def __init__(self, transport: Transport, rights: TakenRights, program: str) -> None:
        self._transport, self._rights, self._program = transport, rights, program

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """``Transport.request``."""
        asked = access_attributes(Request.of(method, target, user=DRAINER))
        right = f"{asked.verb} {asked.qualified_subresource}"
        if not self._rights.lacks(right):
            return await self._transport.request(method, target, headers, body, stream=stream)
        self._rights.refuse(right, self._program)
        error = forbidden_error(asked)
        return ApiResponse(error.code, {"content-type": "application/json"}, msgspec.json.encode(error.status()))

    def close(self) -> None:
        """``Transport.close``."""
        self._transport.close()
