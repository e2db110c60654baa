"""The provider ``rabbitmq``: the node that is to go enters maintenance mode, which moves the leaders of its queues.

What the nodes say is read by their management API. It cannot begin maintenance mode: ``rabbitmq-upgrade drain`` and
``revive`` do, in the node's container. A node in maintenance mode closes its listeners, that of its management API too,
while the others tell that it runs.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from msgspec import Meta

from lastcall.adapters.guard.application_answers import shorten_message
from lastcall.adapters.guard.basic_login import list_login_headers
from lastcall.adapters.guard.drains import Drains
from lastcall.adapters.guard.http_exchange import AnswerTooLarge
from lastcall.adapters.guard.http_member import HttpMember, HttpMemberSettings, JsonAnswer
from lastcall.adapters.guard.provider_factory import ProviderFactory
from lastcall.adapters.guard.rabbitmq_state import RabbitView, describe_check, parse_nodes
from lastcall.adapters.guard.settings import Port, SecretSource
from lastcall.aio import timeout
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.pods import Pod
from lastcall.ports.guard import (
    GuardedMember,
    MemberHealth,
    NamespaceAccess,
    PreparationProgress,
    PreparationReport,
)

AT: Final = "spec.provider.rabbitmq"
NODES: Final = "/api/nodes?disable_stats=true&columns=name,running"
"""Without statistics, which are 15 KB for each node."""

LOGIN: Final = "/api/whoami"
CRITICAL: Final = ("node-is-quorum-critical", "node-is-mirror-sync-critical")
"""Checks of the node that is asked: whether queues would lose their quorum, or their last mirror, without it."""

ALARMS: Final = "local-alarms"
ALONE: Final = "there is no other node"
COMMAND_SECONDS: Final = 20.0
"""So long a command is waited for; it runs on in its container."""

REVIVALS: Final = 2
LOOKS: Final = 6
LOOK_SECONDS: Final = 1.0
"""Between two looks whether all replicas are there again."""

FAILED: Final = 503
MISSING: Final = 404
"""RabbitMQ 4 has no mirrored queues, and no check of them."""


class RabbitmqSettings(HttpMemberSettings, frozen=True, kw_only=True):
    """``spec.provider.rabbitmq``."""

    port: Port = 15672
    username: Annotated[str, Meta(pattern=r"^[^:\x00-\x1f\x7f]*$", max_length=256)] = ""
    password_secret: SecretSource | None = None
    """Key ``password``. The user needs the tag ``monitoring``."""
    container: Annotated[str, Meta(max_length=63, pattern=r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] = ""
    """Where ``rabbitmq-upgrade`` runs: the first one if it is not given."""

    def list_violations(self) -> Iterator[str]:
        """The same as of HTTP members; and there is a login."""
        yield from super().list_violations()
        if not self.username or self.password_secret is None:
            yield "username, passwordSecret: must be given: the management API requires a user"


class RabbitmqProviderFactory(ProviderFactory[RabbitmqSettings]):
    """Makes providers ``rabbitmq``, which share the drains that they have begun."""

    def __init__(self) -> None:
        drains = Drains()
        super().__init__(RabbitmqSettings, AT, lambda settings, access: RabbitmqProvider(settings, access, drains))


class RabbitmqProvider:
    """``ports.guard.GuardProvider``."""

    is_reversible = True

    def __init__(self, settings: RabbitmqSettings, access: NamespaceAccess, drains: Drains) -> None:
        self._settings = settings
        self._access = access
        self._drains = drains
        self._http = HttpMember(settings, settings.port, access)

    async def check_health(self, member: GuardedMember) -> MemberHealth:
        """Whether all nodes run without alarms, and each queue would keep its quorum whichever of them went."""
        pods = [*([member.pod] if member.pod.status.pod_ip else []), *member.others]
        faults = await self._list_silent(pods)
        if not faults:
            view = await self._read_view(member)
            faults = [*view.list_strangers(pods), *view.list_absent(), *([ALONE] if len(view.nodes) < 2 else [])]
        if not faults:
            faults = [f"{pod.metadata.name}: {one}" for pod in pods for one in await self._check_all(pod, ALARMS)]
        return MemberHealth(is_healthy=not faults, message="; ".join(faults))

    async def prepare(self, member: GuardedMember) -> None:
        """Puts the node into maintenance mode; without effect if others do not serve, or queues would lose their quorum."""
        uid = member.pod.metadata.uid
        if await self._describe_obstacle(member):
            return  # check_progress says why
        is_closed = await self._is_closed(member.pod)
        if self._drains.is_done(uid) if is_closed else await self._check_all(member.pod):
            return
        self._drains.record_start(uid, _now())
        try:
            await self._run(member.pod, "drain")
        except TimedOut:
            return
        except Unavailable:
            raise  # it may have been begun
        except LastcallError:
            self._drains.forget(uid)
            raise
        self._drains.record_end(uid)

    async def check_progress(self, member: GuardedMember) -> PreparationReport:
        """READY if the node is in maintenance mode, and all others serve."""
        uid = member.pod.metadata.uid
        if obstacle := await self._describe_obstacle(member):
            return _report(PreparationProgress.STALLED, obstacle)
        is_closed = await self._is_closed(member.pod)
        if is_closed and self._drains.is_done(uid):
            return _report(PreparationProgress.READY, "it is in maintenance mode")
        if self._drains.is_under_way(uid, _now()):
            return _report(PreparationProgress.PREPARING, "it enters maintenance mode")
        if not is_closed and (losses := await self._check_all(member.pod)):
            return _report(PreparationProgress.STALLED, "; ".join(losses))
        return _report(PreparationProgress.LOST, "it is not in maintenance mode")

    async def cancel(self, member: GuardedMember) -> None:
        """Ends maintenance mode. Unavailable as long as queues lack replicas after that."""
        uid = member.pod.metadata.uid
        is_closed = await self._is_closed(member.pod)
        if is_closed:
            own = (await self._read_view(member)).find_node(member)
            if own is None or not own.is_running:
                return  # a node that starts is in no maintenance mode
        if is_closed or self._drains.is_known(uid):
            await self._revive(member)
        self._drains.forget(uid)

    async def release(self, member: GuardedMember) -> None:
        """Nothing has to be ended: a node that starts is in no maintenance mode."""
        self._drains.forget(member.pod.metadata.uid)

    # -- within --------------------------------------------------------------------------------------------------------

    async def _revive(self, member: GuardedMember) -> None:
        """A queue whose leader has not moved yet gets its replica back only if the command is run again afterwards."""
        missing = ""
        for _ in range(REVIVALS):
            await self._run(member.pod, "revive")
            for _ in range(LOOKS):
                if not (missing := await self._describe_missing(member)):
                    return
                await asyncio.sleep(LOOK_SECONDS)
        raise Unavailable(f"queues lack replicas after maintenance mode: {missing}")

    async def _describe_missing(self, member: GuardedMember) -> str:
        """Which queues would lose their quorum, whichever node went, and who does not answer; or ""."""
        found = await asyncio.gather(*(self._describe_losses(pod) for pod in (member.pod, *member.others)))
        return "; ".join(sorted({one for losses in found for one in losses}))

    async def _describe_losses(self, pod: Pod) -> list[str]:
        try:
            return await self._check_all(pod)
        except (Unavailable, TimedOut) as error:
            return [str(error)]

    async def _describe_obstacle(self, member: GuardedMember) -> str:
        """Why the node must not go, whatever its mode: another one is in maintenance mode, or does not run; or "".

        Unavailable or TimedOut if nobody answers.
        """
        silent = await self._list_silent(member.others)
        if silent and len(silent) == len(member.others):
            await self._ask(member.pod, LOGIN)
        if silent:
            return "; ".join(silent)
        view = await self._read_view(member)
        if view.find_node(member) is None:
            return "it is no node of the RabbitMQ cluster"
        return "; ".join(view.list_absent())

    async def _list_silent(self, pods: Sequence[Pod]) -> list[str]:
        """Who does not answer, and why; all are asked at the same time."""
        found = await asyncio.gather(*(self._describe_silence(pod) for pod in pods))
        return [one for one in found if one]

    async def _describe_silence(self, pod: Pod) -> str:
        try:
            await self._ask(pod, LOGIN)
        except (Unavailable, TimedOut) as error:
            return str(error)
        return ""

    async def _is_closed(self, pod: Pod) -> bool:
        """Whether the node takes no connection, as in maintenance mode. TimedOut if it takes one and is silent."""
        try:
            await self._ask(pod, LOGIN)
        except Unavailable:
            return True
        return False

    async def _read_view(self, member: GuardedMember) -> RabbitView:
        """As another node sees it; as the member's own if no other answers. Unavailable if nobody does."""
        own = [member.pod] if member.pod.status.pod_ip else []
        failures = []
        for pod in [*member.others[:2], *own]:
            try:
                answer = await self._ask(pod, NODES)
            except (Unavailable, TimedOut) as error:
                failures.append(str(error))
                continue
            return parse_nodes(answer.value)
        raise Unavailable("; ".join(failures) or "there is no node to ask")

    async def _check_all(self, pod: Pod, *more: str) -> list[str]:
        """What would be lost without the node, and which other checks have failed, as it says itself."""
        found = await asyncio.gather(*(self._check(pod, one) for one in (*CRITICAL, *more)))
        return [one for one in found if one]

    async def _check(self, pod: Pod, check: str) -> str:
        try:
            answer = await self._ask(pod, f"/api/health/checks/{check}", also=(FAILED, MISSING))
        except AnswerTooLarge:
            return f"{check}: many queues"
        return describe_check(answer.value) if answer.status == FAILED else ""

    async def _ask(self, pod: Pod, path: str, *, also: Sequence[int] = ()) -> JsonAnswer:
        settings = self._settings
        headers = await list_login_headers(self._access, settings.username, settings.password_secret)
        answer = await self._http.ask_json(pod, "GET", path, headers=headers)
        if answer.is_success or answer.status in also:
            return answer
        text = f"pod {pod.key}: GET {path}: answered {answer.status}"
        if answer.status in (401, 403):
            assert settings.password_secret is not None
            raise LastcallError(f"{text}: the login of {settings.username} is refused")
        raise Unavailable(text) if answer.status >= 500 else LastcallError(text)

    async def _run(self, pod: Pod, verb: str) -> None:
        """``rabbitmq-upgrade VERB`` in the pod. TimedOut if it takes longer: it runs on."""
        title = f"pod {pod.key}: rabbitmq-upgrade {verb}"
        try:
            async with timeout(COMMAND_SECONDS):
                result = await self._access.execute(pod, self._settings.container, ("rabbitmq-upgrade", verb))
        except TimeoutError:
            raise TimedOut(f"{title} has not ended in {COMMAND_SECONDS:g} s") from None
        if result.code != 0:
            said = shorten_message((result.stderr or result.stdout).strip())
            raise LastcallError(f"{title}: exit code {result.code}{f': {said}' if said else ''}")


def _now() -> float:
    return asyncio.get_running_loop().time()


def _report(progress: PreparationProgress, message: str) -> PreparationReport:
    return PreparationReport(progress=progress, message=message)
