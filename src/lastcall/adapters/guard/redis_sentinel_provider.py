"""The provider ``redis-sentinel``: replication that Sentinels watch. The member that is to go hands its master's role over.

``redis_handover`` says how. The Sentinels decide who is the master: what as many of them say as a failover needs counts,
without the Sentinel that goes with the member.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from msgspec import Meta

from lastcall.adapters.guard.failover_pauses import TOLD_AFTER, FailoverPauses
from lastcall.adapters.guard.provider_factory import ProviderFactory
from lastcall.adapters.guard.redis_handover import NotReceived, RedisHandover, follow
from lastcall.adapters.guard.redis_members import (
    RedisDoor,
    RedisLogin,
    RedisMembers,
    RedisMemberSettings,
    Username,
    read_view,
)
from lastcall.adapters.guard.redis_sentinel_state import SentinelGroup, SentinelView
from lastcall.adapters.guard.redis_sentinels import RedisSentinels
from lastcall.adapters.guard.redis_state import MASTER, REPLICA, Replication
from lastcall.adapters.guard.resp import RedisConnection, RedisError
from lastcall.adapters.guard.settings import Port, SecretSource
from lastcall.errors import Unavailable
from lastcall.model.pods import Pod
from lastcall.model.selectors import LabelSelector, selector_violations
from lastcall.ports.guard import (
    GuardedMember,
    MemberHealth,
    NamespaceAccess,
    PreparationProgress,
    PreparationReport,
)

AT: Final = "spec.provider.redis-sentinel"


class RedisSentinelSettings(RedisMemberSettings, frozen=True, kw_only=True):
    """``spec.provider.redis-sentinel``. TLS counts for Redis and Sentinels."""

    master_name: Annotated[str, Meta(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)]
    """What ``sentinel monitor`` calls the group."""
    sentinel_port: Port = 26379
    sentinel_selector: LabelSelector | None = None
    """Selects the pods of the Sentinels, in the namespace of the policy. Without it they are in the members' pods."""
    sentinel_username: Username = ""
    sentinel_password_secret: SecretSource | None = None
    """Key ``password``."""
    max_lag_bytes: Annotated[int, Meta(ge=0)] = 16 * 2**20
    """With a replica that has so much to catch up with nothing is begun."""
    pause_milliseconds: Annotated[int, Meta(ge=100, le=5000)] = 2000
    """So long writes are paused at most while replicas catch up, and never longer than half ``down-after-milliseconds``."""

    def list_violations(self) -> Iterator[str]:
        """The same as of Redis; and not every pod is one of a Sentinel."""
        yield from super().list_violations()
        if selector := self.sentinel_selector:
            yield from selector_violations(selector, "sentinelSelector")
            if not selector.match_labels and not selector.match_expressions:
                yield "sentinelSelector: {}: needs at least one requirement"


class RedisSentinelProviderFactory(ProviderFactory[RedisSentinelSettings]):
    """Makes providers ``redis-sentinel``, which share the pauses after their failovers."""

    def __init__(self) -> None:
        pauses = FailoverPauses()
        super().__init__(
            RedisSentinelSettings, AT, lambda settings, access: RedisSentinelProvider(settings, access, pauses)
        )


class RedisSentinelProvider:
    """``ports.guard.GuardProvider``."""

    is_reversible = True

    def __init__(self, settings: RedisSentinelSettings, access: NamespaceAccess, pauses: FailoverPauses) -> None:
        self._settings = settings
        self._access = access
        self._pauses = pauses
        self._members = RedisMembers(settings, access)
        login = RedisLogin(settings.sentinel_username, settings.sentinel_password_secret)
        door = RedisDoor(access, settings, settings.sentinel_port, login, "Sentinel")
        self._sentinels = RedisSentinels(door, settings.master_name)

    async def check_health(self, member: GuardedMember) -> MemberHealth:
        """Whether enough Sentinels agree on a master of the application, and all other members follow it closely."""
        pods = [member.pod, *member.others] if member.pod.status.pod_ip else member.others
        group = await self._read_group(member, await self._members.read_all(pods))
        faults = list(group.list_faults(self._settings.max_lag_bytes))
        return MemberHealth(is_healthy=not faults, message="; ".join(faults))

    async def prepare(self, member: GuardedMember) -> None:
        """Hands the master's role over. A former master that follows nobody yet is told whom to follow."""
        async with self._members.connect(member.pod) as redis:
            own = await read_view(redis)
            group = await self._read_whole(member, own)
            master = group.sentinels.master
            if master is None or group.sentinels.is_failing_over:
                return  # check_progress says why
            if master.run_id == own.run_id:
                await self._hand_over(redis, member, group)
            elif _is_astray(own, group):
                await follow(redis, master.server)

    async def check_progress(self, member: GuardedMember) -> PreparationReport:
        """READY if enough Sentinels have another member as the master, and all others follow that one."""
        uid = member.pod.metadata.uid
        own = await self._members.read_pod(member.pod)
        group = await self._read_whole(member, own)
        sentinels = group.sentinels
        if shortage := sentinels.describe_shortage():
            return _stalled_report(shortage)
        if sentinels.is_failing_over:
            return _preparing_report("a Sentinel fails over")
        if sentinels.master is None:
            return self._report_unsettled(uid, "the Sentinels do not agree on the master")
        if sentinels.master.run_id == own.run_id:
            return self._report_master(member, group)
        if silent := "; ".join(group.list_silent()):
            return _stalled_report(silent)
        if not group.leading:
            return self._report_unsettled(uid, "the master that the Sentinels name is no member of the application")
        if fault := group.describe_unsettled(member.pod.metadata.name):
            if _is_astray(own, group):
                return _lost_report(f"it does not follow {group.leading}")
            return self._report_unsettled(uid, f"{group.leading} is the master; {fault}")
        self._pauses.forget(uid)
        return PreparationReport(progress=PreparationProgress.READY, message=f"{group.leading} is the master")

    async def cancel(self, member: GuardedMember) -> None:
        """A master that refuses writes takes them again; a role that was handed over stays where it is.

        Unavailable while a failover is under way, which nothing ends, or while the member does not take its role back.
        """
        async with self._members.connect(member.pod) as redis:
            own = await read_view(redis)
            sentinels = await self._read_sentinels(member)
            if sentinels.is_failing_over or not sentinels.answers:
                raise Unavailable(
                    "a Sentinel fails over, and is not stopped" if sentinels.answers else "no Sentinel answers"
                )
            is_named = any(one.run_id == own.run_id for one in sentinels.answers.values())
            if own.role == REPLICA and is_named and not await self._give_back(redis, member):
                raise Unavailable("it refuses writes, and does not take its role back while another may be the master")
        self._pauses.forget(member.pod.metadata.uid)

    async def release(self, member: GuardedMember) -> None:
        """Nothing has to be ended. Sentinels keep what they know of a member that is gone."""
        self._pauses.forget(member.pod.metadata.uid)

    # -- the master ----------------------------------------------------------------------------------------------------

    async def _hand_over(self, redis: RedisConnection, member: GuardedMember, group: SentinelGroup) -> None:
        """``redis_handover``, from where the member stands. One that was begun here and did not come about is undone."""
        name, uid, now = member.pod.metadata.name, member.pod.metadata.uid, _now()
        is_fenced = group.members[name].role == REPLICA
        handover = await self._plan_handover(member, group, fenced=name if is_fenced else "")
        if is_fenced and (handover is None or self._pauses.count(uid)):
            await self._give_back(redis, member)
            return
        if handover is None or (not is_fenced and self._pauses.seconds_left(uid, now)):
            return  # check_progress says why
        self._pauses.record_start(uid, now)
        within = min(self._settings.pause_milliseconds, group.sentinels.pause_bound)
        if not is_fenced and not await handover.stop_writes(redis, within):
            return
        try:
            await handover.promote(redis)
        except (NotReceived, RedisError):
            await self._give_back(redis, member)
            raise

    async def _plan_handover(self, member: GuardedMember, group: SentinelGroup, *, fenced: str) -> RedisHandover | None:
        """None if something is in the way. Whoever plans chooses the same Sentinel, which does one failover at a time."""
        if any(group.list_faults(self._settings.max_lag_bytes, fenced=fenced)):
            return None
        fit = [name for name, one in group.sentinels.remaining.items() if one.is_fit]
        pods = {pod.metadata.name: pod for pod in await self._list_sentinels(member)}
        chosen = next((pods[name] for name in fit if name in pods), None)
        if chosen is None:
            return None
        return RedisHandover(
            members=self._members,
            sentinels=self._sentinels,
            sentinel=chosen,
            master=group.sentinels.answers[chosen.metadata.name].server,
            replicas=member.others,
        )

    async def _give_back(self, redis: RedisConnection, member: GuardedMember) -> bool:
        """Makes a member the master again that refuses writes; False if another one may have been promoted.

        Every Sentinel has to be heard: one that is silent may have promoted another, or may be about to.
        """
        own = await read_view(redis)
        others = [view for _, view in await self._members.read_all(member.others)]
        if any(isinstance(view, Replication) and view.role == MASTER for view in others):
            return False
        if not (await self._read_sentinels(member)).are_all_for(own.run_id):
            return False
        await redis.call("REPLICAOF", "NO", "ONE")
        return True

    def _report_master(self, member: GuardedMember, group: SentinelGroup) -> PreparationReport:
        name, uid = member.pod.metadata.name, member.pod.metadata.uid
        if group.members[name].role == REPLICA:
            return _lost_report("it is the master, and refuses writes until another one is")
        if faults := "; ".join(group.list_faults(self._settings.max_lag_bytes)):
            return _stalled_report(f"it is the master, and cannot hand over: {faults}")
        count, left = self._pauses.count(uid), self._pauses.seconds_left(uid, _now())
        if left and count >= TOLD_AFTER:
            return _stalled_report(f"{count} failovers did not come about; the next one in {left:.0f} s")
        if left:
            return _preparing_report(f"a failover did not come about; the next one in {left:.0f} s")
        return _lost_report("it is the master")

    def _report_unsettled(self, uid: str, message: str) -> PreparationReport:
        """What a failover leads through counts as progress for a minute after it was begun."""
        return _preparing_report(message) if self._pauses.is_recent(uid, _now()) else _stalled_report(message)

    # -- what they say -------------------------------------------------------------------------------------------------

    async def _read_whole(self, member: GuardedMember, own: Replication) -> SentinelGroup:
        return await self._read_group(member, [(member.pod, own), *await self._members.read_all(member.others)])

    async def _read_group(self, member: GuardedMember, views: Sequence[tuple[Pod, Replication | str]]) -> SentinelGroup:
        return SentinelGroup(
            members={pod.metadata.name: one for pod, one in views if isinstance(one, Replication)},
            silent={pod.metadata.name: one for pod, one in views if isinstance(one, str)},
            sentinels=await self._read_sentinels(member),
        )

    async def _read_sentinels(self, member: GuardedMember) -> SentinelView:
        return await self._sentinels.read_view(await self._list_sentinels(member), leaving=member.pod)

    async def _list_sentinels(self, member: GuardedMember) -> Sequence[Pod]:
        if self._settings.sentinel_selector is not None:
            return await self._access.list_pods(self._settings.sentinel_selector)
        return [member.pod, *member.others] if member.pod.status.pod_ip else member.others


def _is_astray(own: Replication, group: SentinelGroup) -> bool:
    """Whether a replica tries to follow another server than the master that the Sentinels agree on."""
    master = group.sentinels.master
    followed = (own.master_address, own.master_port)
    return own.role == REPLICA and not own.is_linked and master is not None and followed != master.server


def _now() -> float:
    return asyncio.get_running_loop().time()


def _lost_report(message: str) -> PreparationReport:
    return PreparationReport(progress=PreparationProgress.LOST, message=message)


def _preparing_report(message: str) -> PreparationReport:
    return PreparationReport(progress=PreparationProgress.PREPARING, message=message)


def _stalled_report(message: str) -> PreparationReport:
    return PreparationReport(progress=PreparationProgress.STALLED, message=message)
