"""``pods/log``, ``pods/exec`` and ``pods/attach``: proxies between clients and kubelets."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any

import msgspec

from lastcall.aio import wait_first
from lastcall.errors import InvalidInput, Unavailable
from lastcall_lab.apiserver.admission.pod_connections import connect_attributes
from lastcall_lab.apiserver.authorization.audit import AuditLog
from lastcall_lab.apiserver.authorization.request_access import RequestAccess
from lastcall_lab.apiserver.registry.registry import Registry
from lastcall_lab.apiserver.resources import version_conversion
from lastcall_lab.apiserver.resources.scheme import ResourceScheme
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.routing.routes import find_route, parse_path
from lastcall_lab.apiserver.storage.store import StorageKey
from lastcall_lab.apiserver.subresources.kubelet_api import (
    STDOUT,
    ExecSession,
    KubeletApi,
    Kubelets,
    LogOptions,
    choose_container,
)
from lastcall_lab.apiserver.subresources.log_options import check_log_options, read_log_options
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.asgi import Receive, Scope, Send
from lastcall_lab.apiserver.values.request import Object, Request, Response

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""The WebSocket subprotocol: the first byte of each message is its channel."""

DIAL_SECONDS = 5.0
"""Seconds until a node without response is unreachable; kube-apiserver: 30 (``client-go/transport/cache.go``)."""

_LOOK = 0.2
_PORT = 10250
_STDIN, _ERROR, _RESIZE, _CLOSE = 0, 3, 4, 255
_NORMAL, _POLICY = 1000, 1008


class PodStreams:
    """Connects clients with the kubelets that ``kubelets`` finds; at first it finds none."""

    def __init__(self, registry: Registry, scheme: ResourceScheme, *, access: RequestAccess, audit: AuditLog) -> None:
        self._registry = registry
        self._scheme = scheme
        self.kubelets: Kubelets = lambda node: None
        self._access = access
        self._audit = audit

    async def log(self, context: RequestContext) -> Response:
        """GET of ``pods/log``: text, as a stream with ``follow``."""
        check_log_options(context.request, context.route.name)
        pod = self._pod(context)
        container = choose_container(context, pod)
        if not pod["spec"].get("nodeName"):
            return Response(204, {}, b"")
        options = read_log_options(context.request, container, self._registry.clock.wall())
        address = self._address(pod)
        kubelet = await self._dial_kubelet(pod)
        if kubelet is None:
            raise api_errors.ApiError(
                500, "", f'Get "{_url("containerLogs", address, pod, container)}": {_silent(address)}'
            )
        lines = kubelet.logs(pod, options)
        try:
            begin = await anext(lines, b"")
        except InvalidInput as error:
            raise api_errors.bad_request_error("; ".join(error.violations)) from None
        except Unavailable as error:
            raise _unreachable(pod, str(error)) from None
        headers: dict[str, str | list[str]] = {"content-type": "text/plain"}
        return Response(200, headers, _rest(begin, lines))

    async def require_upgrade(self, context: RequestContext) -> Response:
        """The error for ``exec`` and ``attach`` without an upgrade of the connection."""
        await self._admit(context)
        self._start(context)
        raise api_errors.bad_request_error("Upgrade request required")

    async def refuse_port_forward(self, context: RequestContext) -> Response:
        """``portforward`` is not supported; pods are reachable at addresses of this machine."""
        await self._admit(context)
        self._pod(context)
        why = "pods and Services have addresses on this machine: kubectl get pods -o wide, lastcall lab status"
        raise api_errors.ApiError(HTTPStatus.NOT_IMPLEMENTED, "", f"port-forward is not served by the lab: {why}")

    async def serve_upgrade(self, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket for ``exec`` or ``attach``. An invalid request is rejected before it is accepted.

        The kubelet's errors go to the error channel: kubectl would take a rejection for a server without WebSocket
        support and try another protocol.
        """
        await receive()
        began = self._audit.begin()
        try:
            request = self._access.identify(request)
            self._access.authorize(request)
            context = self._context(request)
            # A WebSocket starts with a GET, but the right to get must not include the right to run commands.
            self._access.authorize(replace(request, method="POST"))
            await self._admit(context)
            start = self._start(context)
        except api_errors.ApiError as error:
            self._audit.end(began, request, error.code)
            await _send_refusal(error, scope, send)
            return
        self._audit.end(began, request, HTTPStatus.SWITCHING_PROTOCOLS)
        offered = scope.get("subprotocols") or []
        agreed = next((one for one in PROTOCOLS if one in offered), None)
        await send({"type": "websocket.accept", "subprotocol": agreed})
        await _run(start, receive, send)

    async def _admit(self, context: RequestContext) -> None:
        """ApiError if admission rejects the connection to the pod."""
        attributes = connect_attributes(context)
        await self._registry.admission.mutate(attributes)
        await self._registry.admission.validate(attributes)

    def _context(self, request: Request) -> RequestContext:
        where = parse_path(request.path)
        if where is None or (where.plural, where.subresource) not in (("pods", "exec"), ("pods", "attach")):
            raise api_errors.no_such_resource_error()
        return RequestContext(request, find_route(request, where, self._scheme))

    def _start(self, context: RequestContext) -> Callable[[], Awaitable[ExecSession]]:
        """A function that starts the execution. ApiError if the request is invalid."""
        pod, request = self._pod(context), context.request
        container, verb = choose_container(context, pod), context.route.subresource
        command = list(request.query.get("command", ()))
        if verb == "exec" and not command:
            raise api_errors.bad_request_error("you must specify at least 1 command for the container")
        address = self._address(pod)

        async def start() -> ExecSession:
            kubelet = await self._dial_kubelet(pod)
            if kubelet is None:
                raise Unavailable(
                    f'error sending request: Post "{_url(verb, address, pod, container)}": {_silent(address)}'
                )
            if verb == "attach":
                return _LogSession(kubelet.logs(pod, LogOptions(container, follow=True, tail=0)))
            stdin, tty = request.flag("stdin"), request.flag("tty")
            return await kubelet.execute(pod, container, command, stdin=stdin, tty=tty)

        return start

    def _pod(self, context: RequestContext) -> Object:
        whole = RequestContext(context.request, context.route._replace(subresource=""))
        return version_conversion.to_served(self._registry.reader.get(whole), context.route.resource)

    def _address(self, pod: Object) -> str:
        """The address of the pod's node; ApiError if it has none."""
        name = pod["spec"].get("nodeName", "")
        if not name:
            raise api_errors.bad_request_error(f"pod {pod['metadata']['name']} does not have a host assigned")
        node = self._registry.store.get(StorageKey("nodes", "", name))
        if node is None:
            raise api_errors.not_found_error(
                "pods", "", name
            )  # as in Kubernetes: the node look-up is part of a request for pods
        addresses = (node.to_object().get("status") or {}).get("addresses") or ()
        return next((str(one["address"]) for one in addresses if one["type"] == "InternalIP"), name)

    async def _dial_kubelet(self, pod: Object) -> KubeletApi | None:
        """The kubelet of its node; None if it does not respond within the timeout."""
        node, clock = pod["spec"]["nodeName"], self._registry.clock
        end = clock.boottime() + DIAL_SECONDS
        while (kubelet := self.kubelets(node)) is None and clock.boottime() < end:
            await clock.sleep(_LOOK)
        return kubelet


class _LogSession:
    """An ``ExecSession`` of a container's output from now on; drops its input."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines

    async def write(self, data: bytes) -> None:
        """Drops the input."""

    def end_input(self) -> None:
        """Does nothing."""

    def resize(self, width: int, height: int) -> None:
        """Does nothing: there is no terminal."""

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """The log as it grows."""
        try:
            async for line in self._lines:
                yield STDOUT, line
        finally:
            await self._lines.aclose()  # type: ignore[attr-defined]

    async def wait(self) -> int:
        """Returns when the log ends, which is when the container ends."""
        return 0

    def kill(self) -> None:
        """Does nothing: the container keeps running."""


def _url(verb: str, address: str, pod: Object, container: str) -> str:
    """The kubelet's URL as errors quote it."""
    metadata = pod["metadata"]
    return f"https://{address}:{_PORT}/{verb}/{metadata['namespace']}/{metadata['name']}/{container}"


def _silent(address: str) -> str:
    """A timeout in the words of Go's ``net`` package."""
    return f"dial tcp {address}:{_PORT}: i/o timeout"


def _unreachable(pod: Object, why: str) -> api_errors.ApiError:
    """The API server's error about an unreachable kubelet."""
    return api_errors.ApiError(500, "", f"error dialing backend: {pod['spec']['nodeName']}: {why}")


async def _rest(begin: bytes, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        if begin:
            yield begin
        async for line in lines:
            yield line
    finally:
        await lines.aclose()  # type: ignore[attr-defined]


async def _run(start: Callable[[], Awaitable[ExecSession]], receive: Receive, send: Send) -> None:
    """Runs until the session has ended or the client disconnects."""
    try:
        execution = await start()
    except InvalidInput as error:
        why = "; ".join(error.violations)
        await _send_exit_status(send, _failure(f"Internal error occurred: error executing command in container: {why}"))
        return
    except (OSError, ValueError) as error:  # such as a command with a NUL character
        await _send_exit_status(
            send, _failure(f"Internal error occurred: error executing command in container: {error}")
        )
        return
    except Unavailable as error:
        await _send_exit_status(send, _failure(f"Internal error occurred: {error}"))
        return
    try:
        await wait_first(_input(execution, receive), _output(execution, send))
    finally:
        execution.kill()


async def _input(execution: ExecSession, receive: Receive) -> None:
    """Forwards the client's data; returns when the client disconnects."""
    while (message := await receive())["type"] == "websocket.receive":
        data = message.get("bytes") or (message.get("text") or "").encode()
        channel, content = (data[0], data[1:]) if data else (_STDIN, b"")
        if channel == _STDIN and content:
            await execution.write(content)
        elif channel == _CLOSE and content[:1] == bytes([_STDIN]):
            execution.end_input()
        elif channel == _RESIZE and (size := _size(content)):
            execution.resize(size.width, size.height)


class _Size(msgspec.Struct, rename="pascal"):
    """A terminal size (``remotecommand.TerminalSize``)."""

    width: Annotated[int, msgspec.Meta(ge=0, lt=2**16)] = 80
    height: Annotated[int, msgspec.Meta(ge=0, lt=2**16)] = 24


def _size(content: bytes) -> _Size | None:
    """None if it is invalid; the terminal then keeps its size."""
    try:
        return msgspec.json.decode(content, type=_Size)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


async def _output(execution: ExecSession, send: Send) -> None:
    """Forwards the program's output, and finally its exit status."""
    async for channel, content in execution.output():
        await send(_message(channel, content))
    code = await execution.wait()
    await _send_exit_status(send, _exit(code) if code else {"metadata": {}, "status": "Success"})


def _message(channel: int, content: bytes) -> MutableMapping[str, Any]:
    return {"type": "websocket.send", "bytes": bytes([channel]) + content}


async def _send_exit_status(send: Send, said: Object) -> None:
    """The final ``v1 Status`` on the error channel (``k8s.io/client-go/tools/remotecommand``)."""
    await send(_message(_ERROR, json.dumps(said).encode()))
    await send({"type": "websocket.close", "code": _NORMAL})
    await asyncio.sleep(0)


def _exit(code: int) -> Object:
    message = f"command terminated with non-zero exit code: exit status {code}"
    causes = [{"reason": "ExitCode", "message": str(code)}]
    return {**_failure(message), "reason": "NonZeroExitCode", "details": {"causes": causes}}


def _failure(message: str) -> Object:
    return {"metadata": {}, "status": "Failure", "message": message}


async def _send_refusal(error: api_errors.ApiError, scope: Scope, send: Send) -> None:
    if "websocket.http.response" in scope.get("extensions", {}):
        head = {"type": "websocket.http.response.start", "status": error.code}
        await send({**head, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "websocket.http.response.body", "body": json.dumps(error.status()).encode()})
        return
    await send({"type": "websocket.close", "code": _POLICY, "reason": error.message[:120]})
