"""One gRPC connection to a container runtime; its failures become lastcall's errors."""

from collections.abc import AsyncIterator
from typing import Any

from grpclib.client import Channel
from grpclib.const import Status
from grpclib.encoding.proto import ProtoCodec
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError

from lastcall.adapters.cri.api import api_grpc
from lastcall.errors import InvalidInput, Unavailable

ANSWER = 10.0
"""Seconds within which a runtime answers a request, even while it starts fifty pods."""

_AWAY = (Status.UNAVAILABLE, Status.CANCELLED, Status.DEADLINE_EXCEEDED)


class CriRefused(Unavailable):
    """The runtime was reached and answered with an error; ``status`` is gRPC's code."""

    def __init__(self, message: str, status: Status) -> None:
        super().__init__(message)
        self.status = status


class CriConnection:
    """Connects at the first call, and reconnects by itself after the runtime was unavailable.

    ``endpoint`` is a unix socket as the kubelet's ``containerRuntimeEndpoint`` names it (``unix:///run/x.sock``).
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._path = _socket_path(endpoint)
        self._channel: Channel | None = None
        self._stub: Any = None
        self._closed = False

    async def call(self, verb: str, request: Any, *, within: float = ANSWER) -> Any:
        """Returns the answer to one call of the RuntimeService.

        Raises Unavailable if no answer comes within ``within`` seconds, and CriRefused if the answer is an error.
        CANCELLED and DEADLINE_EXCEEDED count as no answer: versions of containerd differ in which of them an expired
        deadline gets.
        """
        try:
            return await getattr(self._runtime_service(), verb)(request, timeout=within)
        except (*_FAILURES, AttributeError) as error:
            raise self._translate_error(verb, error) from error
        finally:
            self._close_channel()

    async def listen(self, verb: str, request: Any) -> AsyncIterator[Any]:
        """Yields the messages of a streaming call. Ends or fails (Unavailable, CriRefused) with the stream."""
        try:
            async with getattr(self._runtime_service(), verb).open() as stream:
                await stream.send_message(request, end=True)
                async for message in stream:
                    yield message
        except (*_FAILURES, AttributeError) as error:
            raise self._translate_error(verb, error) from error
        finally:
            self._close_channel()

    def close(self) -> None:
        """Closes the connection: calls under way and later calls fail with Unavailable; nothing reconnects."""
        self._closed = True
        self._close_channel()

    def _close_channel(self) -> None:
        # A channel that is closed while it connects is open again once it has connected.
        if self._closed and self._channel is not None:
            self._channel.close()

    def _runtime_service(self) -> Any:
        if self._closed:
            raise Unavailable(f"{self.endpoint}: the connection has been closed")
        if self._channel is None:
            # With a codec given, grpclib does not search the disk here for a library of error details.
            self._channel = Channel(path=self._path, codec=ProtoCodec())
            self._stub = api_grpc.RuntimeServiceStub(self._channel)
        return self._stub

    def _translate_error(self, verb: str, error: BaseException) -> Unavailable:
        where = f"{self.endpoint}: {verb}"
        match error:
            case GRPCError():
                text = f"{where}: {error.message or error.status.name}"
                return Unavailable(text) if error.status in _AWAY else CriRefused(text, error.status)
            case TimeoutError():
                return Unavailable(f"{where}: no answer in time")
            case StreamTerminatedError() | ProtocolError() | AttributeError(name="_transport"):
                # grpclib takes the transport from a connection that is lost while a call begins on it.
                return Unavailable(f"{where}: the connection was lost")
            case AttributeError():
                raise error
            case _:
                return Unavailable(f"{self.endpoint}: {getattr(error, 'strerror', None) or error}")


_FAILURES = (GRPCError, StreamTerminatedError, ProtocolError, OSError)  # a TimeoutError is an OSError


def _socket_path(endpoint: str) -> str:
    path = endpoint.removeprefix("unix://")
    if not path.startswith("/"):
        rule = "a unix socket with an absolute path, such as unix:///run/containerd/containerd.sock"
        raise InvalidInput("container runtime endpoint", [f'"{endpoint}": must be {rule}'])
    return path
