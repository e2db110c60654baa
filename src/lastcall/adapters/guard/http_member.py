"""Asks members over HTTP or HTTPS: what the settings of several providers have in common."""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lastcall.adapters.guard.http_exchange import HttpAnswer, HttpRequest, exchange
from lastcall.adapters.guard.member_tls import MemberTlsSettings, connect_with_tls
from lastcall.aio import timeout
from lastcall.errors import LastcallError, TimedOut
from lastcall.model.base import Facts
from lastcall.model.pods import Pod
from lastcall.ports.guard import MemberStream, NamespaceAccess


class HttpScheme(Enum):
    """How the application is spoken to."""

    HTTP = "http"
    HTTPS = "https"


class HttpMemberSettings(MemberTlsSettings, frozen=True):
    """How a member is reached."""

    scheme: HttpScheme = HttpScheme.HTTP
    timeout_seconds: Annotated[int, Meta(ge=1, le=9)] = 5
    """For one pod's answer; a call of a provider takes 30 seconds at most."""

    def list_violations(self) -> Iterator[str]:
        """What counts with https alone."""
        if self.scheme is HttpScheme.HTTP:
            yield from self.list_unused("scheme https")


class JsonAnswer(Facts, frozen=True):
    """The status of an answer and its JSON value; None without one."""

    status: int
    value: Any = None

    @property
    def is_success(self) -> bool:
        """Whether the status is one of success."""
        return 200 <= self.status < 300


class HttpMember:
    """Asks the pods of an application on one port."""

    def __init__(self, settings: HttpMemberSettings, port: int, access: NamespaceAccess) -> None:
        self._settings = settings
        self._port = port
        self._access = access

    async def ask(
        self, pod: Pod, method: str, target: str, *, body: bytes = b"", headers: Sequence[tuple[str, str]] = ()
    ) -> HttpAnswer:
        """The answer of one pod. Unavailable if it is not reached, TimedOut if its answer takes too long."""
        address, seconds, title = pod.status.pod_ip, self._settings.timeout_seconds, f"pod {pod.key}: {method} {target}"
        host = f"{f'[{address}]' if ':' in address else address}:{self._port}"
        request = HttpRequest(method=method, target=target, host=host, headers=headers, body=body)
        try:
            async with timeout(seconds):
                stream = await self._connect(pod)
                try:
                    return await exchange(stream, request)
                except LastcallError as error:
                    raise type(error)(f"{title}: {error}") from error
                finally:
                    stream.close()
        except TimeoutError:
            raise TimedOut(f"{title}: no answer in {seconds} s") from None

    async def ask_json(
        self, pod: Pod, method: str, target: str, value: Any = None, *, headers: Sequence[tuple[str, str]] = ()
    ) -> JsonAnswer:
        """The same with JSON in both directions. LastcallError if a success is no JSON."""
        body = b"" if value is None else msgspec.json.encode(value)
        answer = await self.ask(pod, method, target, body=body, headers=headers)
        try:
            return JsonAnswer(status=answer.status, value=msgspec.json.decode(bytes(answer.body)))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            if 200 <= answer.status < 300 and answer.body.strip():
                raise LastcallError(f"pod {pod.key}: {method} {target}: the answer is no JSON: {error}") from error
            return JsonAnswer(status=answer.status)

    async def _connect(self, pod: Pod) -> MemberStream:
        if self._settings.scheme is HttpScheme.HTTP:
            return await self._access.connect(pod, self._port)
        return await connect_with_tls(self._access, pod, self._port, self._settings)
