"""Programs run in a container behind the CRI (``kubectl exec``), by the runtime's streaming server."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection, CriRefused
from lastcall.errors import InvalidInput
from lastcall_lab.apiserver.subresources.kubelet_api import STDERR, STDOUT
from lastcall_lab.containerd import spdy

PROTOCOL = "v4.channel.k8s.io"
"""The error stream ends with a Status, which has the exit code (``k8s.io/client-go/tools/remotecommand``)."""

_END_OF_FILE = b"\x04"
_NOT_STARTED = 126


class StreamedExecution:
    """A program run by the CRI's Exec. ``streams`` by their kind; ``tty``: with a terminal."""

    def __init__(self, connection: spdy.SpdyConnection, streams: dict[str, int], *, tty: bool) -> None:
        self._connection = connection
        self._streams = streams
        self._tty = tty
        self._status = bytearray()
        self._let_go = False
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def write(self, data: bytes) -> None:
        """Writes to its standard input, if it has one."""
        if "stdin" in self._streams:
            await self._connection.send(self._streams["stdin"], data)

    def end_input(self) -> None:
        """Closes its standard input; a terminal gets its end-of-file character."""
        if "stdin" not in self._streams:
            return
        if self._tty:
            self._connection.post(self._streams["stdin"], _END_OF_FILE)
        else:
            self._connection.end(self._streams["stdin"])

    def resize(self, width: int, height: int) -> None:
        """Resizes its terminal, if it has one."""
        if "resize" in self._streams:
            size = msgspec.json.encode({"Width": width, "Height": height})
            self._connection.post(self._streams["resize"], size)

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yields the output; if the program cannot be started, the runtime's message comes last."""
        try:
            async for channel, data in self._all_output():
                yield channel, data
        finally:
            self._connection.close()
        code, complaint = _parse_status(bytes(self._status))
        if complaint and not self._let_go:
            yield STDERR, complaint
        if not self._code.done():
            self._code.set_result(code)

    async def _all_output(self) -> AsyncIterator[tuple[int, bytes]]:
        channels = {self._streams.get("stdout"): STDOUT, self._streams.get("stderr"): STDERR}
        open_ = {*channels, self._streams["error"]} - {None}
        async for frame in self._connection.frames():
            if frame.stream == self._streams["error"]:
                self._status += frame.data
            elif frame.data:
                yield channels.get(frame.stream, STDOUT), frame.data
            if frame.last:
                open_.discard(frame.stream)
            if not open_:
                break

    async def wait(self) -> int:
        """The exit code after the end of the output; 126 if it could not be started."""
        return await asyncio.shield(self._code)

    def kill(self) -> None:
        """Disconnects: as with any runtime, a program that neither reads nor writes goes on."""
        self._let_go = True
        self._connection.close()


async def start_execution(
    runtime: CriConnection, container_id: str, command: Sequence[str], *, stdin: bool, tty: bool
) -> StreamedExecution:
    """Starts a program. InvalidInput if the container does not run; Unavailable if runtime or server is down."""
    request = cri.ExecRequest(container_id=container_id, cmd=command, stdin=stdin, stdout=True, stderr=not tty, tty=tty)
    try:
        url = (await runtime.call("Exec", request)).url
    except CriRefused as error:
        raise InvalidInput(f"exec {command[0]}", [str(error)]) from None
    connection = await spdy.SpdyConnection.open(url, protocol=PROTOCOL)
    kinds = ["error", *(["stdin"] if stdin else []), "stdout", "resize" if tty else "stderr"]
    return StreamedExecution(connection, {kind: connection.open_stream(streamtype=kind) for kind in kinds}, tty=tty)


def _parse_status(status: bytes) -> tuple[int, bytes]:
    """The exit code, and the message for a program that did not start."""
    try:
        said: dict[str, Any] = msgspec.json.decode(status)
    except msgspec.DecodeError:
        return _NOT_STARTED, b"the runtime has broken off\n"
    if said.get("status") == "Success":
        return 0, b""
    for cause in (said.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"]), b""
    return _NOT_STARTED, f"{said.get('message', '')}\n".encode()
