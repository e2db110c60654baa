"""The provider ``http``: an application that prepares itself, asked over HTTP; ``docs/how-to/guard-providers.md``."""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from lastcall.adapters.guard.application_answers import (
    ApplicationAnswer,
    member_health,
    progress_report,
    read_answer,
    shorten_message,
)
from lastcall.adapters.guard.http_exchange import HttpAnswer, HttpRequest, exchange
from lastcall.adapters.guard.settings import (
    Port,
    ProviderSettings,
    SecretSource,
    list_setting_violations,
    read_settings,
)
from lastcall.aio import timeout
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.budgets import is_ready
from lastcall.model.pods import Pod
from lastcall.ports.guard import (
    GuardedMember,
    GuardProvider,
    MemberHealth,
    NamespaceAccess,
    PreparationProgress,
    PreparationReport,
)

AT = "spec.provider.http"
MOST_ASKED = 3
"""So many pods are asked for one answer at most, one after the other."""


class HttpScheme(Enum):
    """How the application is spoken to."""

    HTTP = "http"
    HTTPS = "https"


class HttpTarget(Enum):
    """Which pod is asked."""

    MEMBER = "Member"
    """The one that is to be deleted; after it is gone, any other."""
    ANY = "Any"
    """Any other pod of the application first: for applications of which each member answers for all."""


class HttpSettings(ProviderSettings, frozen=True):
    """``spec.provider.http``."""

    port: Port
    path: Annotated[str, Meta(pattern=r"^$|^/[!$&-;=@-Z_a-z~%]*$", max_length=1024)] = ""
    scheme: HttpScheme = HttpScheme.HTTP
    ca_secret: SecretSource | None = None
    """The authority of the application's certificate (PEM); key ``ca.crt``. Without it the system's."""
    server_name: Annotated[str, Meta(pattern=r"^$|^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?$", max_length=253)] = ""
    """The name in the certificate; without it the pod's address."""
    token_secret: SecretSource | None = None
    """A bearer token; key ``token``."""
    target: HttpTarget = HttpTarget.MEMBER
    reversible: bool = False
    timeout_seconds: Annotated[int, Meta(ge=1, le=9)] = 5
    """For one pod's answer; three pods are asked at most, and a call of a provider takes 30 seconds at most."""

    def list_violations(self) -> Iterator[str]:
        """What counts with https alone."""
        if self.scheme is HttpScheme.HTTP and (self.ca_secret or self.server_name):
            field = "caSecret" if self.ca_secret else "serverName"
            yield f'{field}: "{(self.ca_secret and self.ca_secret.name) or self.server_name}": needs scheme https'


class HttpProviderFactory:
    """``ports.guard.GuardProviderFactory`` of ``http``."""

    def check_settings(self, settings: dict[str, Any]) -> list[str]:
        """Each violation."""
        return list_setting_violations(settings, HttpSettings, AT)

    def make_provider(self, settings: dict[str, Any], access: NamespaceAccess) -> GuardProvider:
        """A provider, which holds no connection."""
        return HttpProvider(read_settings(settings, HttpSettings, AT), access)


class HttpProvider:
    """``ports.guard.GuardProvider``: the application does what it is asked, and says how far it is.

    A request may be sent again, and to another pod: the application tells them apart by the member's uid.
    """

    def __init__(self, settings: HttpSettings, access: NamespaceAccess) -> None:
        self._settings = settings
        self._access = access

    @property
    def is_reversible(self) -> bool:
        """As the settings say."""
        return self._settings.reversible

    async def check_health(self, member: GuardedMember) -> MemberHealth:
        """``GET PATH/health``."""
        return member_health(await self._ask(member, "GET", "health"), "GET health")

    async def prepare(self, member: GuardedMember) -> None:
        """``POST PATH/prepare``."""
        await self._ask(member, "POST", "prepare")

    async def check_progress(self, member: GuardedMember) -> PreparationReport:
        """``GET PATH/progress``."""
        answer = await self._ask(member, "GET", "progress")
        if answer.state is None:
            raise LastcallError('GET progress: the answer has no "state"')
        return progress_report(answer, PreparationProgress(answer.state.value))

    async def cancel(self, member: GuardedMember) -> None:
        """``POST PATH/cancel``."""
        await self._ask(member, "POST", "cancel")

    async def release(self, member: GuardedMember) -> None:
        """``POST PATH/release``, to another pod: the member is gone."""
        await self._ask(member, "POST", "release")

    async def _ask(self, member: GuardedMember, method: str, verb: str) -> ApplicationAnswer:
        """The answer of the first pod that can be reached."""
        failure: LastcallError = Unavailable("no pod of the application has an address")
        for pod in _list_targets(member, self._settings.target):
            try:
                return await self._ask_pod(pod, member, method, verb)
            except (Unavailable, TimedOut) as error:
                failure = error
        raise failure

    async def _ask_pod(self, pod: Pod, member: GuardedMember, method: str, verb: str) -> ApplicationAnswer:
        seconds = self._settings.timeout_seconds
        title = f"pod {pod.key}: {method} {self._settings.path}/{verb}"
        try:
            async with timeout(seconds):
                token = await self._read_token()
                answer = await self._exchange(pod, self._make_request(pod, member, method, verb, token), title)
        except TimeoutError:
            raise TimedOut(f"{title}: no answer in {seconds} s") from None
        return _read_http_answer(answer, title, token)

    async def _exchange(self, pod: Pod, request: HttpRequest, title: str) -> HttpAnswer:
        settings = self._settings
        if settings.scheme is HttpScheme.HTTPS:
            source = settings.ca_secret
            ca = await self._access.read_secret(source.name, source.key or "ca.crt") if source else ""
            name = settings.server_name or pod.status.pod_ip
            stream = await self._access.connect(pod, settings.port, tls_name=name, ca=ca)
        else:
            stream = await self._access.connect(pod, settings.port)
        try:
            return await exchange(stream, request)
        except LastcallError as error:
            raise type(error)(f"{title}: {error}") from error
        finally:
            stream.close()

    def _make_request(self, pod: Pod, member: GuardedMember, method: str, verb: str, token: str) -> HttpRequest:
        metadata, address = member.pod.metadata, pod.status.pod_ip
        named = {"uid": metadata.uid, "name": metadata.name, "namespace": metadata.namespace}
        target = f"{self._settings.path.rstrip('/')}/{verb}"
        return HttpRequest(
            method=method,
            target=target if method == "POST" else f"{target}?{urlencode(named)}",
            host=f"{f'[{address}]' if ':' in address else address}:{self._settings.port}",
            headers=[("authorization", f"Bearer {token}")] if token else [],
            body=msgspec.json.encode(named) if method == "POST" else b"",
        )

    async def _read_token(self) -> str:
        source = self._settings.token_secret
        if source is None:
            return ""
        token = await self._access.read_secret(source.name, source.key or "token")
        if not token.isascii() or not token.isprintable():
            raise LastcallError(f"Secret {source.name}: the token has characters that no header may have")
        return token


def _list_targets(member: GuardedMember, target: HttpTarget) -> Sequence[Pod]:
    """The pods to ask, in their order."""
    others = sorted((pod for pod in member.others if pod.status.pod_ip), key=lambda pod: not is_ready(pod))
    own = [member.pod] if member.pod.status.pod_ip else []
    if target is HttpTarget.MEMBER and own:
        return own
    return [*others, *own][:MOST_ASKED]


def _read_http_answer(answer: HttpAnswer, title: str, token: str) -> ApplicationAnswer:
    """What a success says. LastcallError for a refusal, Unavailable for a failure that may be over soon."""
    if 200 <= answer.status < 300:
        return read_answer(bytes(answer.body), title) if answer.body.strip() else ApplicationAnswer()
    if 300 <= answer.status < 400:
        raise LastcallError(f"{title}: answered with a redirect ({answer.status}), which is not followed")
    said = answer.body.decode(errors="replace")
    said = shorten_message(said.replace(token, "***") if token else said)
    message = f"{title}: answered {answer.status}{f': {said}' if said else ''}"
    raise Unavailable(message) if answer.status >= 500 or answer.status == 429 else LastcallError(message)
