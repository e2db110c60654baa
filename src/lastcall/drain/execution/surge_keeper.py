"""Gives workloads one more pod while a drain asks for the evictions, and puts them back."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime

from lastcall.drain.execution.patience import ask_patiently
from lastcall.drain.execution.surge_targets import SurgeTarget
from lastcall.drain.unlocking.surge_step import (
    PatchSurge,
    SurgeFacts,
    SurgeOver,
    WaitForSurge,
    list_put_backs,
    next_surge_step,
)
from lastcall.errors import ApiNotPermitted, LastcallError, NotFound
from lastcall.model.base import Facts
from lastcall.model.surge_facts import Autoscaler, SurgeableWorkload
from lastcall.ports.node import Clock
from lastcall.ports.surges import SurgeCluster

_LOOK_SECONDS = 2.0
"""Seconds between two looks at a workload."""


LEFT = "the same command puts it back"
"""How a sentence about a change that stays ends."""


class SurgeParts(Facts, frozen=True):
    """The outside. ``tell`` shows a sentence.

    ``is_gone`` says whether the pods of these uids have ended or terminate; None while that is not known, or a node of
    the drain is not cordoned yet: the additional pod might start on it. ``is_owner`` says whether the drain has had its
    nodes to itself.
    """

    cluster: SurgeCluster
    clock: Clock
    tell: Callable[[str], None]
    is_gone: Callable[[Collection[str]], bool | None]
    is_owner: Callable[[], bool]


class SurgeKeeper:
    """One step for each workload, again and again. A failure is told and tried again; the drain goes on meanwhile."""

    def __init__(self, targets: Sequence[SurgeTarget], parts: SurgeParts) -> None:
        self._targets, self._parts = list(targets), parts
        self._begun: list[SurgeTarget] = []
        self._told: dict[str, str] = {}
        self._failed: set[str] = set()

    async def run(self) -> None:
        """Until no workload needs anything any more."""
        while self._targets:
            for target in tuple(self._targets):
                await self._take_step(target)
            if self._targets:
                await self._parts.clock.sleep(_LOOK_SECONDS)

    async def put_back(self) -> None:
        """Puts back what is left: the drain has ended, or was interrupted.

        What it has not begun an earlier run may have left. A drain without its nodes puts nothing back: whoever has them
        may evict pods at this moment, because there is one more. Cancelled, it has told what is not put back.
        """
        if self._parts.is_owner():
            left = [*self._begun, *(one for one in self._targets if one not in self._begun)]
            await asyncio.gather(*map(self._put_back, left))
            return
        for target in self._targets:
            if target.is_recorded:
                self._tell(target, f"{target.title} is left as another run of this drain has changed it; {LEFT}")

    async def _put_back(self, target: SurgeTarget) -> None:
        why = "no answer"

        async def patch() -> None:
            nonlocal why
            try:
                workload, autoscalers = await self._read(target)
                for step in list_put_backs([workload, *autoscalers], target.drain):
                    await self._parts.cluster.patch_subject(step.subject, step.patch)
                    self._tell(target, step.why)
            except LastcallError as error:
                why = str(error)
                raise

        try:
            await ask_patiently(patch, self._parts.clock)
        except NotFound:
            return
        except (LastcallError, asyncio.CancelledError) as error:
            self._tell(target, f"{target.title} was not put back: {why}; {LEFT}")
            if isinstance(error, asyncio.CancelledError):
                raise

    async def _take_step(self, target: SurgeTarget) -> None:
        if (is_gone := self._parts.is_gone(target.pods)) is None:
            return
        if target not in self._begun:
            self._begun.append(target)
        try:
            workload, autoscalers = await self._read(target)
            facts = SurgeFacts(
                workload,
                autoscalers,
                target.budgets,
                target.drain,
                is_gone=is_gone,
                failed_before=target.title in self._failed,
            )
            match next_surge_step(facts, datetime.fromtimestamp(self._parts.clock.wall(), UTC)):
                case PatchSurge() as step:
                    await self._parts.cluster.patch_subject(step.subject, step.patch)
                    self._failed |= {target.title} if facts.find_record() and not facts.is_gone else set()
                    self._tell(target, step.why)
                case WaitForSurge(why):
                    self._tell(target, why)
                case SurgeOver(failure, mend):
                    self._targets.remove(target)
                    if failure:
                        self._tell(target, f"{failure}; mend: {mend}")
        except (NotFound, ApiNotPermitted) as error:
            self._targets.remove(target)
            self._tell(target, f"{target.title} gets no more pods: {error}")
        except LastcallError as error:
            self._tell(target, f"{target.title}: {error}; tried again")

    async def _read(self, target: SurgeTarget) -> tuple[SurgeableWorkload, Sequence[Autoscaler]]:
        cluster = self._parts.cluster
        return await asyncio.gather(
            cluster.read_workload(target.kind, target.namespace, target.name),
            cluster.list_autoscalers(target.namespace),
        )

    def _tell(self, target: SurgeTarget, text: str) -> None:
        if self._told.get(target.title) != text:
            self._told[target.title] = text
            self._parts.tell(text)
