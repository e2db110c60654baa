"""The provider ``etcd``: the member that is to go hands its leadership over, and a quorum remains without it.

By the JSON gateway of the etcd API (``/v3``), from etcd 3.4 on. A follower needs no preparation: the guard's own part is
that it only goes while all others are there.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from lastcall.adapters.guard.application_answers import shorten_message
from lastcall.adapters.guard.http_member import HttpMember, HttpMemberSettings, JsonAnswer
from lastcall.adapters.guard.provider_factory import ProviderFactory
from lastcall.adapters.guard.settings import Port, SecretSource
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.base import Facts
from lastcall.model.pods import Pod
from lastcall.ports.guard import (
    GuardedMember,
    MemberHealth,
    NamespaceAccess,
    PreparationProgress,
    PreparationReport,
)

AT: Final = "spec.provider.etcd"
UNAUTHENTICATED: Final = (401, 403)


class EtcdSettings(HttpMemberSettings, frozen=True, kw_only=True):
    """``spec.provider.etcd``."""

    port: Port = 2379
    username: Annotated[str, Meta(max_length=256)] = ""
    password_secret: SecretSource | None = None
    """Key ``password``. The user needs the role root: others may not move the leader."""
    max_lag_entries: Annotated[int, Meta(ge=0)] = 5000
    """A member that has so many entries of the log to apply still is behind."""


class EtcdProviderFactory(ProviderFactory[EtcdSettings]):
    """Makes providers ``etcd``."""

    def __init__(self) -> None:
        super().__init__(EtcdSettings, AT, EtcdProvider)


class _Status(Facts, frozen=True):
    """What a member says of itself (``/v3/maintenance/status``). ``leader`` is "0" if it knows none."""

    id: str
    leader: str
    index: int
    is_learner: bool
    errors: tuple[str, ...] = ()


class _View(Facts, frozen=True):
    """The members by pod, or why one says nothing; ``voters`` are the ids of all that vote."""

    statuses: Mapping[str, _Status]
    silent: Mapping[str, str]
    voters: frozenset[str]

    @property
    def quorum(self) -> int:
        """So many votes decide."""
        return len(self.voters) // 2 + 1


class EtcdProvider:
    """``ports.guard.GuardProvider``."""

    is_reversible = True

    def __init__(self, settings: EtcdSettings, access: NamespaceAccess) -> None:
        self._settings = settings
        self._access = access
        self._http = HttpMember(settings, settings.port, access)

    async def check_health(self, member: GuardedMember) -> MemberHealth:
        """Whether every voting member answers, follows one leader closely, and a quorum remains without one."""
        own = [member.pod] if member.pod.status.pod_ip else []
        view = await self._read_view([*own, *member.others])
        if view.silent:
            return _unhealthy("; ".join(f"{name}: {why}" for name, why in sorted(view.silent.items())))
        missing = view.voters - {one.id for one in view.statuses.values()}
        if missing:
            return _unhealthy(f"{len(missing)} voting members of {len(view.voters)} are no pods of the application")
        if len(view.voters) - 1 < view.quorum:
            return _unhealthy(f"{len(view.voters)} members vote: without one there is no quorum")
        return self._judge_agreement(view)

    async def prepare(self, member: GuardedMember) -> None:
        """Hands the leadership to the member that has applied most; without effect if it is not the leader."""
        status = await self._read_status(member.pod)
        if status.leader != status.id:
            return
        view = await self._read_view(member.others)
        chosen = self._choose_successor(status, view)
        if chosen is None:
            return  # check_progress says why
        path = "/v3/maintenance/transfer-leadership"
        await self._call(member.pod, path, {"targetID": chosen.id})

    async def check_progress(self, member: GuardedMember) -> PreparationReport:
        """READY if another member leads, and a quorum of all follows it without this one."""
        status = await self._read_status(member.pod)
        view = await self._read_view(member.others)
        if status.leader in ("", "0"):
            return _stalled_report("it knows no leader: there is no quorum")
        if status.leader == status.id:
            if self._choose_successor(status, view) is None:
                return _stalled_report(f"it is the leader, and no other member can take over{_describe_silence(view)}")
            return PreparationReport(progress=PreparationProgress.LOST, message="it is the leader")
        leading = next((name for name, one in view.statuses.items() if one.id == status.leader), None)
        if leading is None:
            return _stalled_report(
                f"its leader {status.leader} is no other member of the application{_describe_silence(view)}"
            )
        following = [one for one in view.statuses.values() if one.id in view.voters and one.leader == status.leader]
        if len(following) < view.quorum:
            text = f"{len(following)} of {len(view.voters)} members would remain, and {view.quorum} are needed"
            return _stalled_report(f"{text}{_describe_silence(view)}")
        return PreparationReport(progress=PreparationProgress.READY, message=f"{leading} is the leader")

    async def cancel(self, member: GuardedMember) -> None:
        """The leadership stays where it is: there is nothing to undo. Unavailable if the member does not answer."""
        await self._read_status(member.pod)

    async def release(self, member: GuardedMember) -> None:
        """Nothing has to be ended: a member keeps its place, and its data with its volume."""

    # -- judgements ----------------------------------------------------------------------------------------------------

    def _judge_agreement(self, view: _View) -> MemberHealth:
        leaders = {one.leader for one in view.statuses.values()}
        if len(leaders) > 1 or leaders & {"", "0"}:
            return _unhealthy("the members do not agree on a leader")
        newest = max(one.index for one in view.statuses.values())
        faults = []
        for name, one in sorted(view.statuses.items()):
            faults += [f"{name}: {shorten_message(error)}" for error in one.errors]
            if newest - one.index > self._settings.max_lag_entries:
                faults.append(f"{name} is {newest - one.index} entries behind")
        return _unhealthy("; ".join(faults)) if faults else MemberHealth(is_healthy=True)

    def _choose_successor(self, leader: _Status, view: _View) -> _Status | None:
        fit = [
            one
            for one in view.statuses.values()
            if not one.is_learner
            and one.leader == leader.id
            and leader.index - one.index <= self._settings.max_lag_entries
        ]
        return max(fit, key=lambda one: one.index, default=None)

    # -- calls ---------------------------------------------------------------------------------------------------------

    async def _read_view(self, pods: Sequence[Pod]) -> _View:
        """All are asked at the same time. The list of members is that of the first that answers."""
        answers = await asyncio.gather(*(self._read_status(pod) for pod in pods), return_exceptions=True)
        statuses: dict[str, _Status] = {}
        silent: dict[str, str] = {}
        voters: frozenset[str] = frozenset()
        for pod, answer in zip(pods, answers, strict=True):
            if isinstance(answer, _Status):
                statuses[pod.metadata.name] = answer
                voters = voters or await self._read_voters(pod)
            elif isinstance(answer, (Unavailable, TimedOut)):
                silent[pod.metadata.name] = str(answer)
            else:
                raise answer
        return _View(statuses=statuses, silent=silent, voters=voters)

    async def _read_status(self, pod: Pod) -> _Status:
        found = await self._call(pod, "/v3/maintenance/status", {})
        header = found.get("header")
        return _Status(
            id=str(header.get("member_id", "")) if isinstance(header, dict) else "",
            leader=str(found.get("leader", "0")),
            index=_to_int(found.get("raftAppliedIndex", found.get("raftIndex", 0))),
            is_learner=found.get("isLearner") is True,
            errors=tuple(map(str, found["errors"])) if isinstance(found.get("errors"), list) else (),
        )

    async def _read_voters(self, pod: Pod) -> frozenset[str]:
        found = await self._call(pod, "/v3/cluster/member/list", {})
        members = [one for one in found.get("members") or () if isinstance(one, dict)]
        return frozenset(str(one.get("ID", "")) for one in members if one.get("isLearner") is not True)

    async def _call(self, pod: Pod, path: str, value: Mapping[str, Any]) -> dict[str, Any]:
        token = await self._read_token(pod)
        headers = [("authorization", token)] if token else []
        return _read_answer(await self._http.ask_json(pod, "POST", path, value, headers=headers), f"{pod.key}: {path}")

    async def _read_token(self, pod: Pod) -> str:
        """A token of this member; "" without a password."""
        source = self._settings.password_secret
        if source is None:
            return ""
        password = await self._access.read_secret(source.name, source.key or "password")
        path = "/v3/auth/authenticate"
        login = {"name": self._settings.username or "root", "password": password}
        answer = await self._http.ask_json(pod, "POST", path, login)
        if answer.status in (400, *UNAUTHENTICATED):
            raise LastcallError(f"{pod.key}: the password of Secret {source.name} is refused")
        token = str(_read_answer(answer, f"{pod.key}: {path}").get("token", ""))
        if not token.isascii() or not token.isprintable():
            raise LastcallError(f"{pod.key}: {path}: the answer has no token")
        return token


def _read_answer(answer: JsonAnswer, title: str) -> dict[str, Any]:
    """The JSON object of a success. Unavailable for what may be over soon, LastcallError for a refusal."""
    if answer.is_success and isinstance(answer.value, dict):
        return answer.value
    said = answer.value.get("message") or answer.value.get("error") if isinstance(answer.value, dict) else ""
    text = f"{title}: answered {answer.status}{f': {shorten_message(str(said))}' if said else ''}"
    raise Unavailable(text) if answer.status >= 500 or answer.status == 429 else LastcallError(text)


def _to_int(value: Any) -> int:
    """64-bit numbers are strings in the JSON of protocol buffers."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _describe_silence(view: _View) -> str:
    return "".join(f"; {name}: {why}" for name, why in sorted(view.silent.items()))


def _unhealthy(message: str) -> MemberHealth:
    return MemberHealth(is_healthy=False, message=message)


def _stalled_report(message: str) -> PreparationReport:
    return PreparationReport(progress=PreparationProgress.STALLED, message=message)
