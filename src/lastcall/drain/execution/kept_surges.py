"""The additional pods of a drain: kept beside the run, and put back when it ends."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection

from lastcall.aio import cancel_and_wait, timeout
from lastcall.drain.execution.drain_run import DrainRun
from lastcall.drain.execution.surge_keeper import SurgeKeeper, SurgeParts
from lastcall.drain.execution.surge_targets import find_surge_targets
from lastcall.drain.planning.drain_case import DrainCase
from lastcall.ports.node import Clock
from lastcall.ports.surges import SurgeCluster

_GOODBYE = 35.0
"""Seconds for what is put back at the end: more than an API server takes to start again."""


@contextlib.asynccontextmanager
async def keep_surges(
    cluster: SurgeCluster, case: DrainCase, run: DrainRun, tell: Callable[[str], None], clock: Clock, *, begins: bool
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Takes the steps of all surges meanwhile; without ``begins`` only puts back what an earlier run has left.

    The value is what ``DrainRun.run`` has to do before it releases the nodes: it puts everything back, within bounds.
    """

    def is_gone(pods: Collection[str]) -> bool | None:
        course = run.course
        if course.pods is None:
            return None
        seen = (course.seen.get(uid) for uid in pods)
        return all(pod is None or pod.terminating_since is not None for pod in seen)

    parts = SurgeParts(cluster=cluster, clock=clock, tell=tell, is_gone=is_gone, is_owner=lambda: run.course.is_owned)
    keeper = SurgeKeeper(find_surge_targets(case, begins=begins), parts)
    keeping = asyncio.create_task(keeper.run(), name="additional pods")

    async def put_back() -> None:
        await cancel_and_wait(keeping)
        with contextlib.suppress(TimeoutError):
            async with timeout(_GOODBYE):
                await keeper.put_back()

    try:
        yield put_back
    finally:
        await cancel_and_wait(keeping)
