"""The calls of one step for many objects: all at once, as far as the pool has room, and each one told of."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from lastcall.errors import ApiFailure, LastcallError, RefusedForSafety, TimedOut, Unavailable
from lastcall.failover.controller.call_limiter import CallLimiter
from lastcall.failover.decisions import api_refusals
from lastcall.failover.decisions.case import ApiRefusal
from lastcall.failover.reporting.controller_events import CallReported, Listener
from lastcall.ports.node import Clock

_RANKS = {"detach": 0, "force-delete": 1, "delete": 2}
"""Where there is no room for all: a node that has begun is done before the next begins, soon after it was decided about."""


class CallBatch:
    """Of one step of one node. What is refused for one object is no trouble of the others.

    ``acted`` is what holds for each call; ``refusals`` are the node's, by uid, and are kept up. ``check`` is what each call
    begins with. It is begun while calls wait for room, shortly before it is their turn: they would all keep their places
    until it is answered else, and nothing else would be done meanwhile.
    """

    def __init__(
        self,
        acted: CallReported,
        refusals: dict[str, ApiRefusal],
        pool: CallLimiter,
        clock: Clock,
        tell: Listener,
        check: Callable[[], Awaitable[None]],
    ) -> None:
        self._acted = acted
        self._refusals = refusals
        self._pool = pool
        self._clock = clock
        self._tell = tell
        self._check = check
        self._checking: asyncio.Task[None] | None = None
        """The check that was begun ahead of calls."""
        self._failures: list[LastcallError] = []
        self.sent: set[str] = set()
        """Uids that a call notes as it sends its first write, which may be carried out also if nothing is answered; or at
        which the server fails before."""

    async def call_all(self, objects: Sequence[tuple[str, str, str]], call: Callable[[str], Awaitable[None]]) -> None:
        """``call`` for the uid of each object (uid, namespace, name).

        The first failure that holds for all ends the step and is raised, when what was under way has come back. So is a
        mistake of ours, when all have: no call outlives the step.
        """
        async with self._without_check_left():
            over = await asyncio.gather(*(self._call_one(*found, call) for found in objects), return_exceptions=True)
        for mistake in filter(None, over):
            raise mistake
        if self._failures:
            raise self._failures[0]

    async def _call_one(self, uid: str, namespace: str, name: str, call: Callable[[str], Awaitable[None]]) -> None:
        began = self._clock.boottime()
        try:
            rank = _RANKS[self._acted.verb]
            if not await self._pool.run(lambda: self._attempt_call(uid, call), rank=rank, soon=self._check_ahead):
                return
            self._refusals.pop(uid, None)
            error, gone = "", False
        except (RefusedForSafety, TimedOut, Unavailable, ApiFailure) as failure:
            if not self._concerns_object(uid, failure):
                return
            gone = api_refusals.is_object_gone(failure)  # that is what was wanted, and somebody else has done it
            error = "" if gone else str(failure)
            self._remember_refusal(uid, None if gone else failure)
        self._tell(
            replace(
                self._acted,
                namespace=namespace,
                name=name,
                uid=uid,
                began=began,
                ended=self._clock.boottime(),
                error=error,
                gone=gone,
            )
        )

    async def _attempt_call(self, uid: str, call: Callable[[str], Awaitable[None]]) -> bool:
        """Whether it was made: not after one has failed for a reason that holds for all."""
        if self._failures:
            return False
        await call(uid)
        return True

    def _check_ahead(self) -> None:
        """Begins a check that nobody waits for; the calls make their own, and have its answer if it is new enough."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check_quietly())

    async def _check_quietly(self) -> None:
        with suppress(LastcallError):  # a call that checks is told the same
            await self._check()

    @asynccontextmanager
    async def _without_check_left(self) -> AsyncGenerator[None, None]:
        """No check outlives the step."""
        try:
            yield
        finally:
            if self._checking:
                self._checking.cancel()
                await asyncio.gather(self._checking, return_exceptions=True)

    def _concerns_object(self, uid: str, failure: LastcallError) -> bool:
        """Whether it says something of this object: a call that nothing was sent for says nothing but that the step ends."""
        ends = api_refusals.ends_step(failure, sent=uid in self.sent)
        if ends:
            self._failures.append(failure)
        return not ends or (uid in self.sent and not isinstance(failure, RefusedForSafety))

    def _remember_refusal(self, uid: str, failure: LastcallError | None) -> None:
        before = self._refusals.pop(uid, None)
        if failure:
            self._refusals[uid] = api_refusals.next_refusal(failure, before, self._clock.boottime())
