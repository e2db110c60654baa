"""Hooks and probes that need no container runtime: an HTTP GET, a TCP connection, a pause."""

import asyncio
import contextlib
import ssl
import string
from urllib.parse import quote

from lastcall import aio
from lastcall.model.pods import Container, HTTPGetAction, SleepAction, TCPSocketAction
from lastcall.ports.node import Clock, HookResult

_CONTROL = {chr(code) for code in (*range(0x20), 0x7F)} - {"\t"}


async def run_http_get(
    action: HTTPGetAction, *, pod_ip: str, container: Container, limit: float, clock: Clock
) -> HookResult:
    """GETs the path from the pod's address, or from the action's ``host``; any status from 200 to 399 is success.

    The port's name is looked up in ``container``; empty means 80. As with the kubelet, the certificate of an HTTPS
    server is not verified and redirects are not followed. The connection is closed at the limit.
    """
    asking = asyncio.ensure_future(_send_http_get(action, pod_ip, container))
    if await aio.wait_first(asking, clock.sleep(limit)) == 0:
        return asking.result()
    return HookResult(
        ok=False, timed_out=True, message=f"httpGet {action.path}: no answer within {round(limit, 1):g} s"
    )


async def run_tcp_socket(
    action: TCPSocketAction, *, pod_ip: str, container: Container, limit: float, clock: Clock
) -> HookResult:
    """Opens a connection and closes it at once: an open connection is success."""
    opening = asyncio.ensure_future(_try_connect(action.host or pod_ip, action.port, container))
    if await aio.wait_first(opening, clock.sleep(limit)) == 0:
        return opening.result()
    return HookResult(
        ok=False, timed_out=True, message=f"tcpSocket {action.port}: no answer within {round(limit, 1):g} s"
    )


async def run_sleep(action: SleepAction, *, limit: float, clock: Clock) -> HookResult:
    """Waits (KEP-3960), but no longer than the limit."""
    await clock.sleep(min(action.seconds, limit))
    if action.seconds <= limit:
        return HookResult(ok=True)
    message = f"sleep of {action.seconds} s: cut off after {round(limit, 1):g} s"
    return HookResult(ok=False, timed_out=True, message=message)


def port_number(port: int | str, container: Container) -> int:
    """The number of a port that may be a name; ValueError if the container has no such port."""
    if port == "":
        return 80
    if isinstance(port, int) or port.isdecimal():
        return int(port)
    for known in container.ports or ():
        if known.name == port:
            return known.container_port
    raise ValueError(f'container "{container.name}" has no port named "{port}"')


async def _try_connect(host: str, port: int | str, container: Container) -> HookResult:
    try:
        _, writer = await asyncio.open_connection(host, port_number(port, container))
    except (OSError, ValueError) as error:
        return HookResult(ok=False, message=f"tcpSocket {port}: {error}")
    writer.transport.abort()
    return HookResult(ok=True)


async def _send_http_get(action: HTTPGetAction, pod_ip: str, container: Container) -> HookResult:
    try:
        host, port = action.host or pod_ip, port_number(action.port, container)
        status = await _fetch_status(
            host, port, _request_head(action, host, port), tls=action.scheme.upper() == "HTTPS"
        )
    except (OSError, EOFError, ValueError) as error:
        return HookResult(ok=False, message=f"httpGet {action.path}: {str(error) or type(error).__name__}")
    if 200 <= status < 400:
        return HookResult(ok=True)
    return HookResult(ok=False, message=f"httpGet {action.path}: answered {status}")


def _request_head(action: HTTPGetAction, host: str, port: int) -> bytes:
    """The request's head. The caller's headers override ours; a line break in one is an error."""
    address = f"[{host}]" if ":" in host else host
    headers = {"host": f"{address}:{port}", "user-agent": "lastcall", "accept": "*/*"}
    for header in action.http_headers or ():
        if _CONTROL.intersection(header.name + header.value):
            raise ValueError(f'header "{header.name}" contains a control character')
        headers[header.name.lower()] = header.value
    headers["connection"] = "close"
    path = quote(action.path if action.path.startswith("/") else f"/{action.path}", safe=string.punctuation)
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


async def _fetch_status(host: str, port: int, request: bytes, *, tls: bool) -> int:
    """Returns the status of the answer; does not wait for a body."""
    reader, writer = await asyncio.open_connection(host, port, ssl=_unverified_context() if tls else None)
    try:
        writer.write(request)
        while True:
            status = _parse_status((await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0])
            if status >= 200:  # lower ones are interim answers
                return status
    except asyncio.LimitOverrunError as error:
        raise ValueError("the answer's head is longer than 64 KiB") from error
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _parse_status(line: bytes) -> int:
    version, _, rest = line.partition(b" ")
    if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
        raise ValueError(f"not an HTTP/1 answer: {line[:60]!r}")
    return int(rest[:3])


def _unverified_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
