"""The provider ``http``: an application that prepares itself, asked over HTTP; ``docs/how-to/guard-providers.md``."""

from collections.abc import Sequence
from enum import Enum
from typing import Annotated
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
from lastcall.adapters.guard.http_exchange import HttpAnswer
from lastcall.adapters.guard.http_member import HttpMember, HttpMemberSettings
from lastcall.adapters.guard.provider_factory import ProviderFactory
from lastcall.adapters.guard.settings import Port, SecretSource
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.budgets import is_ready
from lastcall.model.pods import Pod
from lastcall.ports.guard import (
    GuardedMember,
    MemberHealth,
    NamespaceAccess,
    PreparationProgress,
    PreparationReport,
)

AT = "spec.provider.http"
MOST_ASKED = 3
"""So many pods are asked for one answer at most, one after the other."""


class HttpTarget(Enum):
    """Which pod is asked."""

    MEMBER = "Member"
    """The one that is to be deleted; after it is gone, any other."""
    ANY = "Any"
    """Any other pod of the application first: for applications of which each member answers for all."""


class HttpSettings(HttpMemberSettings, frozen=True, kw_only=True):
    """``spec.provider.http``. Three pods are asked at most, each for ``timeout_seconds``."""

    port: Port
    path: Annotated[str, Meta(pattern=r"^$|^/[!$&-;=@-Z_a-z~%]*$", max_length=1024)] = ""
    token_secret: SecretSource | None = None
    """A bearer token; key ``token``."""
    target: HttpTarget = HttpTarget.MEMBER
    reversible: bool = False


class HttpProviderFactory(ProviderFactory[HttpSettings]):
    """Makes providers ``http``."""

    def __init__(self) -> None:
        super().__init__(HttpSettings, AT, HttpProvider)


class HttpProvider:
    """``ports.guard.GuardProvider``: the application does what it is asked, and says how far it is.

    A request may be sent again, and to another pod: the application tells them apart by the member's uid.
    """

    def __init__(self, settings: HttpSettings, access: NamespaceAccess) -> None:
        self._settings = settings
        self._access = access
        self._http = HttpMember(settings, settings.port, access)

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
        path, metadata = f"{self._settings.path.rstrip('/')}/{verb}", member.pod.metadata
        named = {"uid": metadata.uid, "name": metadata.name, "namespace": metadata.namespace}
        token = await self._read_token()
        headers = [("authorization", f"Bearer {token}")] if token else []
        if method == "POST":
            answer = await self._http.ask(pod, method, path, body=msgspec.json.encode(named), headers=headers)
        else:
            answer = await self._http.ask(pod, method, f"{path}?{urlencode(named)}", headers=headers)
        return _read_http_answer(answer, f"pod {pod.key}: {method} {path}", token)

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
