"""What drains ask the API server for, recorded where they send it, before anything can happen to it on its way."""

from collections.abc import Mapping

import msgspec

from lastcall.adapters.kube.transport import ApiResponse, Transport
from lastcall_lab.simulation.truth import RemovalRequest, Truth

_EVICTION = "/eviction"


class _Preconditions(msgspec.Struct, frozen=True):
    uid: str = ""


class _Options(msgspec.Struct, frozen=True):
    preconditions: _Preconditions | None = None


class _Eviction(msgspec.Struct, frozen=True, rename="camel"):
    delete_options: _Options = _Options()


class RecordedTransport:
    """``transport.Transport`` of one run of a drain, which tells the truth of each request for the end of a pod."""

    def __init__(self, transport: Transport, truth: Truth, run: str) -> None:
        self._transport, self._truth, self._run = transport, truth, run

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """``Transport.request``."""
        if method in ("POST", "DELETE") and (asked := read_removal_request(method, target, body)):
            self._truth.record_removal_request(self._run, asked)
        return await self._transport.request(method, target, headers, body, stream=stream)

    def close(self) -> None:
        """``Transport.close``."""
        self._transport.close()


def read_removal_request(method: str, target: str, body: bytes) -> RemovalRequest | None:
    """What a request asks for; None if it is not about the end of one pod."""
    path = target.partition("?")[0]
    evicts = method == "POST" and path.endswith(_EVICTION)
    collection, _, name = path.removesuffix(_EVICTION).rpartition("/")
    if not collection.endswith("/pods") or not (evicts or method == "DELETE"):
        return None
    if evicts:
        options = msgspec.json.decode(body, type=_Eviction).delete_options
    else:
        options = msgspec.json.decode(body, type=_Options) if body else _Options()
    return RemovalRequest(name=name, uid=options.preconditions.uid if options.preconditions else "", evicts=evicts)
