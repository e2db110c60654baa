"""Runs commands in containers by the WebSocket of ``pods/exec`` (``v5.channel.k8s.io``, KEP-4006).

``websockets`` is an optional dependency, imported when the first command runs. The first byte of a message is its
channel; the last message is a Status on the error channel (``k8s.io/client-go/tools/remotecommand``).
"""

import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec

from lastcall import __version__
from lastcall.adapters.kube import api_errors, tls
from lastcall.adapters.kube.credentials import Credential, CredentialSource
from lastcall.adapters.kube.endpoint import ServerEndpoint
from lastcall.adapters.kube.resources import PODS
from lastcall.adapters.kube.transport import ApiResponse
from lastcall.errors import ApiFailure, LastcallError, RequestRefused, Unavailable
from lastcall.model.base import Facts
from lastcall.model.foreign_text import plain_text
from lastcall.model.pods import Pod
from lastcall.ports.guard import ExecResult

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

OUTPUT_BYTES = 64 * 1024
"""So much of each output is kept; the rest is dropped as it comes."""

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
CONNECT_SECONDS = 10.0
_MESSAGE_BYTES = 1024 * 1024
_STDOUT, _STDERR, _ERROR = 1, 2, 3


class _StatusCause(Facts, frozen=True):
    reason: str = ""
    message: str = ""


class _StatusDetails(Facts, frozen=True):
    causes: tuple[_StatusCause, ...] | None = None


class _ExitStatus(Facts, frozen=True):
    status: str = ""
    message: str = ""
    reason: str = ""
    details: _StatusDetails | None = None


class PodExec:
    """Needs ``get`` and ``create`` of ``pods/exec``: a WebSocket begins with a GET, and servers ask for both.

    A command that is cancelled runs on in its container: the API has no way to end it.
    """

    def __init__(self, endpoint: ServerEndpoint, credentials: CredentialSource) -> None:
        self._endpoint = endpoint
        self._credentials = credentials

    async def execute(self, pod: Pod, container: str, command: tuple[str, ...]) -> ExecResult:
        """Runs the command to its end. Unavailable if no exit status arrives: whether it ran is unknown.

        LastcallError if it is not permitted, or could not be started.
        """
        credential = await self._credentials.current_credential()
        try:
            return await self._run(credential, self._target(pod, container, command))
        except (ApiFailure, Unavailable) as error:
            raise type(error)(f"pod {pod.key}: {error}") from error

    async def _run(self, credential: Credential, target: str) -> ExecResult:
        try:
            from websockets.asyncio.client import connect  # noqa: PLC0415 - optional, and most guards run no command
            from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException  # noqa: PLC0415
        except ImportError as error:
            raise LastcallError("commands need the extra guard: pip install 'lastcall[guard]'") from error

        class UnredirectedConnect(connect):
            """A redirect is a refusal: credentials go to the API server alone."""

            def process_redirect(self, exc: Exception) -> Exception | str:
                return exc

        endpoint = self._endpoint
        scheme = "wss" if endpoint.secure else "ws"
        try:
            async with UnredirectedConnect(
                f"{scheme}://{endpoint.netloc}{endpoint.prefix}{target}",
                ssl=self._context(credential),
                server_hostname=(endpoint.server_name or endpoint.host) if endpoint.secure else None,
                additional_headers=_headers(credential),
                user_agent_header=f"lastcall/{__version__}",
                subprotocols=PROTOCOLS,  # type: ignore[arg-type]  # a NewType of str, which is imported late
                compression=None,
                proxy=None,
                open_timeout=CONNECT_SECONDS,
                ping_interval=None,
                close_timeout=1,
                max_size=_MESSAGE_BYTES,
            ) as connection:
                return await _read_result(connection)
        except InvalidStatus as error:
            if error.response.status_code == 401:
                self._credentials.mark_refused(credential)
            answer = ApiResponse(error.response.status_code, {}, bytes(error.response.body or b""))
            raise api_errors.response_error(answer) from error
        except (InvalidHandshake, WebSocketException, OSError, TimeoutError) as error:
            raise Unavailable(f"the connection to its container failed: {error or 'no answer in time'}") from error

    def _context(self, credential: Credential) -> ssl.SSLContext | None:
        if not self._endpoint.secure:
            return None
        return tls.client_context(
            self._endpoint.authority,
            insecure=self._endpoint.insecure,
            certificate=credential.certificate,
            key=credential.key,
        )

    def _target(self, pod: Pod, container: str, command: Sequence[str]) -> str:
        path = PODS.path(pod.metadata.namespace, pod.metadata.name, "exec")
        query = [("stdout", "true"), ("stderr", "true"), *(("command", word) for word in command)]
        if container:
            query.append(("container", container))
        return f"{path}?{urlencode(query)}"


def _headers(credential: Credential) -> list[tuple[str, str]]:
    bearer = [("authorization", f"Bearer {credential.token}")] if credential.token else []
    return [*bearer, *credential.headers]


async def _read_result(connection: "ClientConnection") -> ExecResult:
    outputs = {_STDOUT: bytearray(), _STDERR: bytearray()}
    async for message in connection:
        data = message.encode() if isinstance(message, str) else message
        channel, content = (data[0], data[1:]) if data else (_STDOUT, b"")
        if channel == _ERROR and content:
            code = _exit_code(content)
            return ExecResult(code=code, stdout=_decode(outputs[_STDOUT]), stderr=_decode(outputs[_STDERR]))
        if (output := outputs.get(channel)) is not None:
            output += content[: OUTPUT_BYTES - len(output)]
    raise Unavailable("the connection to its container ended without an exit status")


def _exit_code(content: bytes) -> int:
    try:
        said = msgspec.json.decode(content, type=_ExitStatus)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Unavailable("its exit status cannot be read") from error
    if said.status == "Success":
        return 0
    codes = _exit_codes(said)
    if codes:
        return codes[0]
    message = plain_text(said.message)[:300] or "the command failed without a reason"
    if "error executing command in container" in message:
        raise RequestRefused(message)  # it was not started: no such program, for instance
    raise Unavailable(message)


def _exit_codes(said: _ExitStatus) -> Sequence[int]:
    causes: Any = said.details.causes if said.details else None
    return [int(one.message) for one in causes or () if one.reason == "ExitCode" and one.message.isdecimal()]


def _decode(output: bytearray) -> str:
    return output.decode(errors="replace")
