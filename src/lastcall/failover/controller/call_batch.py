"""The calls of one step for many objects: concurrent within the limiter's slots, each reported by itself."""

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
"""The order of calls that wait for a slot: a node in progress is finished before the next one begins, soon after its
decision.
"""


class CallBatch:
    """The calls of one step of one node. A refusal for one object does not affect the others.

    ``acted`` holds the fields that all calls share; ``refusals``, by UID, are the node's and are updated. Each call
    begins with ``check``. While calls wait for slots, a check is started shortly before their turn: otherwise all of
    them would hold their slots until it is answered, and no other call could run.
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
        """The check that was started ahead of the calls."""
        self._failures: list[LastcallError] = []
        self.sent: set[str] = set()
        """UIDs whose call sent its first write, which may take effect even unanswered, or failed just before it."""

    async def call_all(self, objects: Sequence[tuple[str, str, str]], call: Callable[[str], Awaitable[None]]) -> None:
        """Runs ``call`` for the UID of each object (UID, namespace, name).

        The first failure that affects all objects ends the step, and is raised after the running calls have returned.
        So is an internal error, after all calls: no call outlives the step.
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
            gone = api_refusals.is_object_gone(failure)  # the intended result, achieved by another client
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
        """Whether the call was made: none is, after one has failed for a reason that affects all."""
        if self._failures:
            return False
        await call(uid)
        return True

    def _check_ahead(self) -> None:
        """Starts a check without waiting for it; the calls run their own, which reuses its answer if it is recent."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check_quietly())

    async def _check_quietly(self) -> None:
        with suppress(LastcallError):  # a call that checks is told the same
            await self._check()

    @asynccontextmanager
    async def _without_check_left(self) -> AsyncGenerator[None, None]:
        """Cancels the running check, so that none outlives the step."""
        try:
            yield
        finally:
            if self._checking:
                self._checking.cancel()
                await asyncio.gather(self._checking, return_exceptions=True)

    def _concerns_object(self, uid: str, failure: LastcallError) -> bool:
        """Whether the failure is about this object: a call that sent nothing only ends the step."""
        ends = api_refusals.ends_step(failure, sent=uid in self.sent)
        if ends:
            self._failures.append(failure)
        return not ends or (uid in self.sent and not isinstance(failure, RefusedForSafety))

    def _remember_refusal(self, uid: str, failure: LastcallError | None) -> None:
        before = self._refusals.pop(uid, None)
        if failure:
            self._refusals[uid] = api_refusals.next_refusal(failure, before, self._clock.boottime())
