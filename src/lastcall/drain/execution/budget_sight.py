"""What a drain sees of the budgets that hold its pods: whether the API server would let a pod go now, and since when."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from lastcall.aio import cancel_and_wait
from lastcall.drain.decisions.pod_progress import SeenRoom
from lastcall.model.budgets import Budget, EvictionAllowed, decide_eviction
from lastcall.model.drain_facts import DrainPod
from lastcall.ports.drain import BudgetWatch
from lastcall.ports.node import Clock


class BudgetSight:
    """Follows budgets from the first refusal on: a drain that none holds does not ask for them.

    ``tell_change`` is called when a budget has changed.
    """

    def __init__(self, watch: BudgetWatch, clock: Clock, tell_change: Callable[[], None]) -> None:
        self._watch, self._clock, self._tell_change = watch, clock, tell_change
        self._following: asyncio.Task[None] | None = None
        self._known: dict[str, tuple[tuple[str, ...], SeenRoom]] = {}

    def start(self) -> None:
        """Begins to follow them, if that has not been done."""
        if self._following is None:
            self._following = asyncio.create_task(self._follow(), name="watch the budgets")

    async def stop(self) -> None:
        """Ends it."""
        if self._following is not None:
            await cancel_and_wait(self._following)

    def look(self, pods: Iterable[DrainPod]) -> Mapping[str, SeenRoom]:
        """What is known of each pod's budgets, by uid; empty while that may be out of date.

        A pod that none has covered is missing: something else has refused it, and its answer says when to ask again.
        """
        if self._following is None or not self._watch.is_current:
            return {}
        budgets = self._watch.budgets
        found = {pod.metadata.uid: self._see(pod, budgets.get(pod.metadata.namespace, ())) for pod in pods}
        self._known = {uid: one for uid, one in found.items() if one is not None}
        return {uid: room for uid, (_, room) in self._known.items()}

    def _see(self, pod: DrainPod, budgets: Iterable[Budget]) -> tuple[tuple[str, ...], SeenRoom] | None:
        own = [one for one in budgets if one.covers(pod)]
        before = self._known.get(pod.metadata.uid)
        if not own and before is None:
            return None
        is_open = isinstance(decide_eviction(pod, own), EvictionAllowed)
        version = (str(is_open), *(one.metadata.resource_version for one in own))
        if before is not None and before[0] == version:
            return before
        return version, SeenRoom(is_open=is_open, changed_at=self._clock.boottime())

    async def _follow(self) -> None:
        async def tell() -> None:
            seen = -1
            while True:
                seen = await self._watch.wait_for_change(seen)
                self._tell_change()

        telling = asyncio.create_task(tell(), name="tell of budgets")
        try:
            await self._watch.run()
        finally:
            await cancel_and_wait(telling)
