"""Hands a Redis master's role over by a Sentinel, so that no acknowledged write is lost.

``SENTINEL FAILOVER`` treats the master as dead: it promotes what replica it likes, and the former master takes writes for
seconds more, which are lost. So writes end first, and every replica has all of them before one is promoted:

1. The master's writes are paused until all replicas have received what it has written.
2. It becomes a replica of nobody, which refuses writes until it is told otherwise: a pause may end too early. Where it
   stands then is the measure of all others.
3. A Sentinel fails over. Whichever replica it chooses has everything.
4. The former master follows the new one, and its clients are disconnected, as Sentinels do it, so that they ask anew.

If whoever does this dies in the middle, the pause ends by itself; a master that refuses writes is down for the Sentinels,
which fail over by themselves after ``down-after-milliseconds`` and 20 seconds.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from lastcall.adapters.guard.redis_members import RedisMembers, read_view
from lastcall.adapters.guard.redis_sentinels import RedisSentinels, ServerAddress
from lastcall.adapters.guard.redis_state import Replication
from lastcall.adapters.guard.resp import RedisConnection, RedisError
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.pods import Pod

ARRIVAL_SECONDS: Final = 2.0
"""What was on its way when writes ended arrives in that time, or the handover is given up."""

PROMOTION_SECONDS: Final = 8.0
"""So long a promotion is waited for. One that takes longer is noticed later."""

NOBODY: Final[ServerAddress] = ("127.0.0.1", 1)
"""Where nothing listens, inside the pod: a replica that tries to connect to itself with TLS would wait for itself."""

_POLL: Final = 0.05


class NotReceived(LastcallError):
    """A replica lacks some of the writes: nothing was promoted, and the master may take its role back."""


@dataclass(frozen=True, kw_only=True)
class RedisHandover:
    """One handover: the Sentinel that fails over, its ``master``, and the ``replicas``, which are all other members."""

    members: RedisMembers
    sentinels: RedisSentinels
    sentinel: Pod
    master: ServerAddress
    replicas: Sequence[Pod]

    async def stop_writes(self, redis: RedisConnection, milliseconds: int) -> bool:
        """Whether the master refuses writes now: all replicas have received what it had.

        Writes are paused for ``milliseconds`` at most. The connection is one to the master.
        """
        await redis.call("CLIENT", "PAUSE", str(milliseconds), "WRITE")
        have_all = await self._wait_until_received(await read_view(redis), milliseconds / 1000)
        if have_all:
            await redis.call("REPLICAOF", NOBODY[0], str(NOBODY[1]))
        await redis.call("CLIENT", "UNPAUSE")
        return have_all

    async def promote(self, redis: RedisConnection) -> None:
        """Has a replica promoted, and the former master follow it; returns before that if it takes long.

        NotReceived and RedisError: nothing was begun.
        """
        if not await self._wait_until_received(await read_view(redis), ARRIVAL_SECONDS):
            raise NotReceived("a replica has not received all writes")
        await self.sentinels.fail_over(self.sentinel, self.master)
        with suppress(Unavailable, TimedOut):
            await self._follow_promotion(redis)

    async def _wait_until_received(self, master: Replication, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not await self._have_received(master):
            if loop.time() >= end:
                return False
            await asyncio.sleep(_POLL)
        return True

    async def _have_received(self, master: Replication) -> bool:
        views = [view for _, view in await self.members.read_all(self.replicas)]
        return all(isinstance(one, Replication) and one.offset >= master.offset for one in views)

    async def _follow_promotion(self, redis: RedisConnection) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + PROMOTION_SECONDS
        while loop.time() < end:
            found = await self.sentinels.read_address(self.sentinel)
            if found != self.master:
                await follow(redis, found)
                return
            await asyncio.sleep(_POLL)


async def follow(redis: RedisConnection, master: ServerAddress) -> None:
    """Has a server that takes no writes follow the master, and disconnects its clients."""
    await redis.call("REPLICAOF", master[0], str(master[1]))
    with suppress(RedisError):  # a user that may not do it: clients find out by themselves
        await redis.call("CLIENT", "KILL", "TYPE", "normal")
