"""The provider ``redis``: replication without Sentinel. The member that is to go hands its master's role over.

``FAILOVER`` (Redis 6.2) pauses the writes, waits until the chosen replica has all of them, and makes it the master. It
must not be used under Sentinel, which would fail over once more (redis issue 13118).
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta

from lastcall.adapters.guard.failover_pauses import TOLD_AFTER, FailoverPauses
from lastcall.adapters.guard.provider_factory import ProviderFactory
from lastcall.adapters.guard.redis_members import RedisMembers, RedisMemberSettings, read_view
from lastcall.adapters.guard.redis_state import MASTER, ReplicaLink, Replication
from lastcall.adapters.guard.resp import RedisConnection
from lastcall.errors import TimedOut, Unavailable
from lastcall.model.pods import Pod
from lastcall.ports.guard import (
    GuardedMember,
    MemberHealth,
    NamespaceAccess,
    PreparationProgress,
    PreparationReport,
)

AT: Final = "spec.provider.redis"
NO_FAILOVER: Final = "no-failover"

MOST_LAG_SECONDS = 2
"""A replica that is online confirms each second what it has."""


class RedisSettings(RedisMemberSettings, frozen=True):
    """``spec.provider.redis``."""

    max_lag_bytes: Annotated[int, Meta(ge=0)] = 16 * 2**20
    """A replica that has so much to catch up with takes no master's role over."""
    failover_milliseconds: Annotated[int, Meta(ge=1500, le=10_000)] = 2000
    """So long writes are paused at most while a replica catches up; then nothing has changed. A replica confirms what it
    has once a second, and the master waits for that, so that a healthy failover takes up to a second.
    """


class RedisProviderFactory(ProviderFactory[RedisSettings]):
    """Makes providers ``redis``, which share the pauses after their failovers."""

    def __init__(self) -> None:
        pauses = FailoverPauses()
        super().__init__(RedisSettings, AT, lambda settings, access: RedisProvider(settings, access, pauses))


class RedisProvider:
    """``ports.guard.GuardProvider``."""

    is_reversible = True

    def __init__(self, settings: RedisSettings, access: NamespaceAccess, pauses: FailoverPauses) -> None:
        self._settings = settings
        self._members = RedisMembers(settings, access)
        self._pauses = pauses

    async def check_health(self, member: GuardedMember) -> MemberHealth:
        """Whether one member is the master, and all others are its replicas and follow it closely."""
        views = await self._members.read_all(
            [member.pod, *member.others] if member.pod.status.pod_ip else list(member.others)
        )
        silent = [pod.metadata.name for pod, view in views if isinstance(view, str)]
        if silent:
            return _unhealthy(f"{', '.join(silent)}: no answer")
        known = [(pod, view) for pod, view in views if isinstance(view, Replication)]
        for pod, view in known:
            if view.is_cluster or view.is_sentinel or view.is_watched:
                what = "belongs to a Redis Cluster" if view.is_cluster else "is watched by Sentinels, or is one"
                return _unhealthy(f"{pod.metadata.name} {what}: the provider redis is for replication without them")
        masters = [(pod, view) for pod, view in known if view.role == MASTER]
        if len(masters) != 1:
            return _unhealthy(f"{len(masters)} masters: {', '.join(pod.metadata.name for pod, _ in masters) or 'none'}")
        if not member.others:
            return _unhealthy("there is no other member")
        return self._judge_replicas(masters[0][1], known)

    async def prepare(self, member: GuardedMember) -> None:
        """Starts a failover to the replica that has received most.

        If the member is a replica already, those that follow it get its master: a failover leaves them where they are.
        """
        async with self._members.connect(member.pod) as redis:
            view = await read_view(redis)
            if view.role == MASTER:
                await self._start_failover(redis, view, member)
                return
        self._pauses.forget(member.pod.metadata.uid)
        for pod in await self._list_followers(member):
            async with self._members.connect(pod) as redis:
                await redis.call("REPLICAOF", view.master_address, str(self._settings.port))

    async def _start_failover(self, redis: RedisConnection, view: Replication, member: GuardedMember) -> None:
        uid, now = member.pod.metadata.uid, asyncio.get_running_loop().time()
        chosen = self._choose_replica(view, member.others)
        if view.failover != NO_FAILOVER or chosen is None or self._pauses.seconds_left(uid, now):
            return  # check_progress says why
        within = str(self._settings.failover_milliseconds)
        self._pauses.record_start(uid, now)
        await redis.call("FAILOVER", "TO", chosen.address, str(chosen.port), "TIMEOUT", within)

    async def _list_followers(self, member: GuardedMember) -> list[Pod]:
        """The other members whose master is this one. Unavailable if one does not answer."""
        found = []
        for pod in member.others:
            async with self._members.connect(pod) as redis:
                if (await read_view(redis)).master_address == member.pod.status.pod_ip:
                    found.append(pod)
        return found

    async def check_progress(self, member: GuardedMember) -> PreparationReport:
        """READY if another member is the master, and this one has received all that it had."""
        async with self._members.connect(member.pod) as redis:
            view = await read_view(redis)
        if view.role == MASTER:
            return self._report_master(view, member)
        self._pauses.forget(member.pod.metadata.uid)
        return await self._report_replica(view, member)

    async def cancel(self, member: GuardedMember) -> None:
        """A master's role that was handed over stays where it is. Unavailable while a failover is under way.

        A failover ends by itself when its time is over. ``FAILOVER ABORT`` may come after the chosen replica has become
        the master, and then there are two: Redis' documentation of the command.
        """
        async with self._members.connect(member.pod) as redis:
            view = await read_view(redis)
        if view.failover != NO_FAILOVER:
            raise Unavailable(
                f"its failover is under way ({view.failover}) and is not aborted: two masters could remain"
            )
        self._pauses.forget(member.pod.metadata.uid)

    async def release(self, member: GuardedMember) -> None:
        """Nothing has to be ended."""

    # -- judgements ----------------------------------------------------------------------------------------------------

    def _judge_replicas(self, master: Replication, known: Sequence[tuple[Pod, Replication]]) -> MemberHealth:
        """A replica may follow another replica: then its own word counts for how much it has."""
        behind = []
        for pod, view in known:
            if view.role == MASTER:
                continue
            link = next((one for one in master.replicas if one.address == pod.status.pod_ip), None)
            if not view.is_linked:
                behind.append(f"{pod.metadata.name} is not connected to a master")
            elif link and not self._follows(master, link):
                behind.append(f"{pod.metadata.name} is {master.offset - link.offset} bytes and {link.lag} s behind")
            elif master.offset - view.offset > self._settings.max_lag_bytes:
                behind.append(f"{pod.metadata.name} is {master.offset - view.offset} bytes behind")
        return _unhealthy("; ".join(behind)) if behind else MemberHealth(is_healthy=True)

    def _follows(self, master: Replication, link: ReplicaLink) -> bool:
        is_close = master.offset - link.offset <= self._settings.max_lag_bytes
        return link.is_online and 0 <= link.lag <= MOST_LAG_SECONDS and is_close

    def _choose_replica(self, master: Replication, others: Sequence[Pod]) -> ReplicaLink | None:
        addresses = {one.status.pod_ip for one in others}
        fit = [one for one in master.replicas if one.address in addresses and self._follows(master, one)]
        return max(fit, key=lambda one: one.offset, default=None)

    def _report_master(self, view: Replication, member: GuardedMember) -> PreparationReport:
        if view.failover != NO_FAILOVER:
            best = max((one.offset for one in view.replicas), default=0)
            return PreparationReport(
                progress=PreparationProgress.PREPARING,
                percent=100 * best // view.offset if view.offset else None,
                message=f"the failover is under way: {view.failover}",
            )
        if self._choose_replica(view, member.others) is None:
            return PreparationReport(
                progress=PreparationProgress.STALLED,
                message="it is the master, and no replica follows it: writes would be lost",
            )
        count = self._pauses.count(member.pod.metadata.uid)
        left = self._pauses.seconds_left(member.pod.metadata.uid, asyncio.get_running_loop().time())
        if left and count >= TOLD_AFTER:
            text = f"{count} failovers did not come about, see the log of Redis; the next one in {left:.0f} s"
            return PreparationReport(progress=PreparationProgress.STALLED, message=text)
        if left:
            text = f"a failover did not come about; the next one in {left:.0f} s"
            return PreparationReport(progress=PreparationProgress.PREPARING, message=text)
        return PreparationReport(progress=PreparationProgress.LOST, message="it is the master")

    async def _report_replica(self, view: Replication, member: GuardedMember) -> PreparationReport:
        """The master has to be another member of the application, and to be heard by this one."""
        master = next((one for one in member.others if one.status.pod_ip == view.master_address), None)
        if master is None:
            text = f"its master {view.master_address} is no other member of the application"
            return PreparationReport(progress=PreparationProgress.STALLED, message=text)
        try:
            async with self._members.connect(master) as redis:
                view = await read_view(redis)
        except (Unavailable, TimedOut) as error:
            return PreparationReport(
                progress=PreparationProgress.STALLED, message=f"the master does not answer: {error}"
            )
        if view.role != MASTER or view.failover != NO_FAILOVER:
            text = f"{master.metadata.name} is not the master yet"
            return PreparationReport(progress=PreparationProgress.PREPARING, message=text)
        if followers := await self._list_followers(member):
            text = f"{', '.join(pod.metadata.name for pod in followers)} has it as master still"
            return PreparationReport(progress=PreparationProgress.LOST, message=text)
        return PreparationReport(progress=PreparationProgress.READY, message=f"{master.metadata.name} is the master")


def _unhealthy(message: str) -> MemberHealth:
    return MemberHealth(is_healthy=False, message=message)
