"""The provider ``patroni``: PostgreSQL under Patroni. The member that is to go hands its leadership over.

``POST /switchover`` writes into the DCS that the leader is to step down, and answers when another member leads. It is
Patroni that chooses that member. Whoever answers late or not at all is asked how it stands instead.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from lastcall.adapters.guard.application_answers import shorten_message
from lastcall.adapters.guard.basic_login import list_login_headers
from lastcall.adapters.guard.http_member import HttpMember, HttpMemberSettings
from lastcall.adapters.guard.patroni_state import (
    SYNCHRONOUS,
    MemberStatus,
    PatroniCluster,
    PatroniView,
    match_members,
    parse_cluster,
    parse_status,
)
from lastcall.adapters.guard.provider_factory import ProviderFactory
from lastcall.adapters.guard.settings import Port, SecretSource
from lastcall.adapters.guard.switchovers import Switchovers
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.pods import Pod
from lastcall.ports.guard import (
    GuardedMember,
    MemberHealth,
    NamespaceAccess,
    PreparationProgress,
    PreparationReport,
)

AT: Final = "spec.provider.patroni"
UNAUTHENTICATED: Final = (401, 403)


class PatroniSettings(HttpMemberSettings, frozen=True, kw_only=True):
    """``spec.provider.patroni``."""

    port: Port = 8008
    username: Annotated[str, Meta(pattern=r"^[^:\x00-\x1f\x7f]*$", max_length=256)] = ""
    password_secret: SecretSource | None = None
    """Key ``password``: what ``restapi.authentication`` of Patroni's configuration asks for."""
    max_lag_bytes: Annotated[int, Meta(ge=0)] = 2**20
    """A replica that has more of the write-ahead log to replay is behind; Patroni's ``maximum_lag_on_failover``."""

    def list_violations(self) -> Iterator[str]:
        """The same as of HTTP members; and a password has a user."""
        yield from super().list_violations()
        if self.password_secret and not self.username:
            yield f'passwordSecret: "{self.password_secret.name}": needs username'
        if self.username and not self.password_secret:
            yield f'username: "{self.username}": needs passwordSecret'


class PatroniProviderFactory(ProviderFactory[PatroniSettings]):
    """Makes providers ``patroni``, which share the switchovers that they have begun."""

    def __init__(self) -> None:
        switchovers = Switchovers()
        super().__init__(PatroniSettings, AT, lambda settings, access: PatroniProvider(settings, access, switchovers))


class PatroniProvider:
    """``ports.guard.GuardProvider``."""

    is_reversible = True

    def __init__(self, settings: PatroniSettings, access: NamespaceAccess, switchovers: Switchovers) -> None:
        self._settings = settings
        self._access = access
        self._switchovers = switchovers
        self._http = HttpMember(settings, settings.port, access)

    async def check_health(self, member: GuardedMember) -> MemberHealth:
        """Whether all members answer, one leads, the others follow it closely, and nothing is in a switchover's way."""
        own = [member.pod] if member.pod.status.pod_ip else []
        pods = [*own, *member.others]
        view = await self._read_view(pods)
        faults = list(self._list_faults(view, pods))
        return MemberHealth(is_healthy=not faults, message="; ".join(faults))

    async def prepare(self, member: GuardedMember) -> None:
        """Has Patroni begin a switchover; without effect if the member does not lead, or nobody can take over."""
        pod, uid = member.pod, member.pod.metadata.uid
        view = await self._read_view([pod, *member.others], own=pod)
        name = view.names.get(pod.metadata.name)
        if name is None or view.cluster.leader != name or view.cluster.describe_obstacle():
            return  # check_progress says why
        begun = self._switchovers.find(uid, _now())
        is_under_way = begun is not None and not begun.refusal
        if is_under_way or not view.list_successors(pod.metadata.name, self._settings.max_lag_bytes):
            return
        settings = self._settings
        headers = await list_login_headers(self._access, settings.username, settings.password_secret)
        self._switchovers.record(uid, _now())
        try:
            refusal = await self._switch_over(pod, name, headers)
        except Unavailable:
            raise  # it may have been begun
        except LastcallError:
            self._switchovers.forget(uid)
            raise
        if refusal:
            self._switchovers.record(uid, _now(), refusal)

    async def check_progress(self, member: GuardedMember) -> PreparationReport:
        """READY if another member leads, this one follows it closely and, of three or more, one follows it besides."""
        pod = member.pod.metadata
        view = await self._read_view([member.pod, *member.others], own=member.pod)
        cluster, name = view.cluster, view.names.get(pod.name)
        if name is None:
            return _stalled_report("it is no member of the Patroni cluster")
        if obstacle := cluster.describe_obstacle():
            return _stalled_report(obstacle)
        if not cluster.leader:
            return self._report_unsettled(pod.uid, f"no member is the leader{view.describe_silence()}")
        if cluster.leader == name:
            return self._report_leader(view, member.pod)
        return self._report_follower(view, member)

    async def cancel(self, member: GuardedMember) -> None:
        """The leadership stays where it is: there is nothing to undo. Unavailable if the member does not answer."""
        await self._read_status(member.pod)
        self._switchovers.forget(member.pod.metadata.uid)

    async def release(self, member: GuardedMember) -> None:
        """Nothing has to be ended: a member that is gone is forgotten by Patroni."""
        self._switchovers.forget(member.pod.metadata.uid)

    # -- judgements ----------------------------------------------------------------------------------------------------

    def _list_faults(self, view: PatroniView, pods: Sequence[Pod]) -> Iterator[str]:
        cluster = view.cluster
        yield from (f"{name}: {why}" for name, why in sorted(view.silent.items()))
        if obstacle := cluster.describe_obstacle():
            yield obstacle
        strange = {one.name for one in cluster.members} - set(view.names.values())
        if strange:
            yield f"{', '.join(sorted(strange))}: no pods of the application"
        for pod in pods:
            if pod.metadata.name not in view.names:
                yield f"{pod.metadata.name} is no member of the Patroni cluster"
        if not cluster.leader:
            yield "no member is the leader"
        elif view.leading_pod in view.statuses:
            yield from self._list_faults_of_replication(view)
        yield from _list_missing(cluster)

    def _list_faults_of_replication(self, view: PatroniView) -> Iterator[str]:
        if not view.statuses[view.leading_pod].is_leading:
            yield f"{view.leading_pod} is the leader, and no primary that runs"
        for pod in sorted(view.statuses):
            fault = "" if pod == view.leading_pod else view.describe_fault(pod, self._settings.max_lag_bytes)
            if fault:
                yield f"{pod} {fault}"

    def _report_leader(self, view: PatroniView, pod: Pod) -> PreparationReport:
        begun = self._switchovers.find(pod.metadata.uid, _now())
        if begun and begun.refusal:
            return _stalled_report(f"it is the leader, and Patroni says: {begun.refusal}")
        if begun:
            return _preparing_report("the switchover is under way")
        most = self._settings.max_lag_bytes
        if view.list_successors(pod.metadata.name, most):
            return PreparationReport(progress=PreparationProgress.LOST, message="it is the leader")
        others = [one for one in sorted(view.statuses) if one != pod.metadata.name]
        faults = "".join(f"; {one} {fault}" for one in others if (fault := view.describe_fault(one, most)))
        return _stalled_report(f"it is the leader, and no other member can take over{faults}{view.describe_silence()}")

    def _report_follower(self, view: PatroniView, member: GuardedMember) -> PreparationReport:
        uid, own, leading = member.pod.metadata.uid, member.pod.metadata.name, view.leading_pod
        most = self._settings.max_lag_bytes
        if not leading:
            text = f"its leader {view.cluster.leader} is no other member of the application"
            return _stalled_report(f"{text}{view.describe_silence()}")
        if leading in view.silent:
            return _stalled_report(f"its leader does not answer{view.describe_silence()}")
        if not view.statuses[leading].is_leading:
            return self._report_unsettled(uid, f"{leading} is the leader, and no primary that runs yet")
        if fault := view.describe_fault(own, most):
            return self._report_unsettled(uid, f"{leading} is the leader; {own} {fault}")
        followers = [one for one in view.statuses if one not in (own, leading) and not view.describe_fault(one, most)]
        if not followers and (len(member.others) > 1 or len(view.cluster.members) > 2 or view.cluster.is_strict):
            text = f"{leading} is the leader, and no other replica would follow it closely"
            return self._report_unsettled(uid, f"{text}{view.describe_silence()}")
        self._switchovers.forget(uid)
        return PreparationReport(progress=PreparationProgress.READY, message=f"{leading} is the leader")

    def _report_unsettled(self, uid: str, message: str) -> PreparationReport:
        """What a switchover leads through counts as progress for a minute after it was begun."""
        return _preparing_report(message) if self._switchovers.find(uid, _now()) else _stalled_report(message)

    # -- calls ---------------------------------------------------------------------------------------------------------

    async def _read_view(self, pods: Sequence[Pod], *, own: Pod | None = None) -> PatroniView:
        """All are asked at the same time. Unavailable or TimedOut if ``own`` or, without it, nobody answers."""
        answers = await asyncio.gather(*(self._read_status(pod) for pod in pods), return_exceptions=True)
        statuses: dict[str, MemberStatus] = {}
        silent: dict[str, str] = {}
        for pod, answer in zip(pods, answers, strict=True):
            if isinstance(answer, MemberStatus):
                statuses[pod.metadata.name] = answer
            elif isinstance(answer, (Unavailable, TimedOut)) and pod is not own:
                silent[pod.metadata.name] = str(answer)
            else:
                raise answer
        asked = next((pod for pod in pods if pod.metadata.name in statuses), None)
        if asked is None:
            raise Unavailable("; ".join(silent.values()) or "there is no member to ask")
        cluster = await self._read_cluster(asked)
        return PatroniView(
            cluster=cluster, statuses=statuses, silent=silent, names=match_members(cluster, pods, statuses)
        )

    async def _read_status(self, pod: Pod) -> MemberStatus:
        return parse_status(await self._read(pod, "/patroni"))

    async def _read_cluster(self, pod: Pod) -> PatroniCluster:
        answers = await asyncio.gather(
            *(self._read(pod, path) for path in ("/cluster", "/config")), return_exceptions=True
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return parse_cluster(*answers)

    async def _read(self, pod: Pod, path: str) -> Any:
        answer = await self._http.ask_json(pod, "GET", path)
        if answer.is_success:
            return answer.value
        text = f"pod {pod.key}: GET {path}: answered {answer.status}"
        raise Unavailable(text) if answer.status >= 500 else LastcallError(text)

    async def _switch_over(self, pod: Pod, name: str, headers: Sequence[tuple[str, str]]) -> str:
        """Why Patroni refuses or has failed; "" if it was begun, also if the answer takes too long."""
        body, path = msgspec.json.encode({"leader": name}), "/switchover"
        try:
            answer = await self._http.ask(pod, "POST", path, body=body, headers=headers)
        except TimedOut:
            return ""
        if 200 <= answer.status < 300:
            return ""
        if answer.status in UNAUTHENTICATED:
            raise LastcallError(f"pod {pod.key}: POST {path}: {self._describe_login()} is refused: {answer.status}")
        said = shorten_message(bytes(answer.body).decode(errors="replace"))
        return f"{answer.status} {said}".strip()

    def _describe_login(self) -> str:
        source = self._settings.password_secret
        return f"the password of Secret {source.name}" if source else "a request without a password"


def _list_missing(cluster: PatroniCluster) -> Iterator[str]:
    if len(cluster.members) < 2:
        yield "there is no other member"
    if cluster.is_synchronous and not any(one.role in SYNCHRONOUS for one in cluster.members):
        yield "there is no synchronous standby"
    if cluster.is_synchronous and cluster.is_strict and len(cluster.members) < 3:
        yield "without one of two members writes would stop: synchronous_mode_strict"


def _now() -> float:
    return asyncio.get_running_loop().time()


def _preparing_report(message: str) -> PreparationReport:
    return PreparationReport(progress=PreparationProgress.PREPARING, message=message)


def _stalled_report(message: str) -> PreparationReport:
    return PreparationReport(progress=PreparationProgress.STALLED, message=message)
