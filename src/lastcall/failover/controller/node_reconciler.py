"""One node in trouble: rounds of gathering, deciding and doing, until there is nothing left to do for it."""

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import replace

from lastcall.aio import Signal, wait_first
from lastcall.errors import Conflict, LastcallError, RefusedForSafety, TooManyRequests
from lastcall.failover.controller.case_builder import CaseBuilder, GatheredCase
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.controller.node_fencers import NodeFencers
from lastcall.failover.controller.node_reading import NodeReading, is_reading_reusable
from lastcall.failover.controller.replacement_finder import ReplacementFinder
from lastcall.failover.controller.step_context import StepContext
from lastcall.failover.controller.step_executor import StepExecutor
from lastcall.failover.decisions import decision_table, marking, pod_list_reuse, removal_backoff, steps
from lastcall.failover.decisions.case import ApiRefusal
from lastcall.failover.evidence.lost_pods import LostPod, merge_lost
from lastcall.failover.evidence.node_observations import NodeObservations
from lastcall.failover.evidence.owner_mark import OwnerMark
from lastcall.failover.reporting.controller_events import Listener, RemovalsRepeated, StepDecided, StepExecuted
from lastcall.model.fence_policy import FailoverMode
from lastcall.ports.node import Clock

LOOK = 2.0
"""Seconds between two looks at a node that is being failed over: pods and replacements are not watched."""
LOOK_AT_REST = 30.0
"""The same, for one on which nothing of ours is; and the most for one that waits while the server is busy with others."""
TOLD = 0.1
"""Seconds in which the watch tells which attachments have gone: who looks before looks twice, and asks for them again."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
"""Seconds after a round that has failed, and after many."""
_MOST_PATIENCE = 60.0
"""Seconds for which one waits as it is told to: a webhook, or a proxy, may say anything."""

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(h|m|s|ms)?")

log = logging.getLogger(__name__)


class NodeReconciler:
    """``wake`` makes it look at once. ``run`` returns when the node is well, or gone."""

    def __init__(
        self,
        name: str,
        observing: ClusterView,
        gathering: CaseBuilder,
        acting: StepExecutor,
        devices: NodeFencers,
        replacements: ReplacementFinder,
        reading: NodeReading,
        clock: Clock,
        tell: Listener,
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """``busy``: whether calls wait for room, by which pods and volumes of any node are removed."""
        self.name = name
        self.step: steps.Step | None = None
        self.gathered: GatheredCase | None = None
        """What the last decision was made from; None before the first."""
        self._observing = observing
        self._gathering = gathering
        self._acting = acting
        self._devices = devices
        self._clock = clock
        self._tell = tell
        self._busy = busy
        self._refusals: dict[str, ApiRefusal] = {}
        self._replacements = replacements
        self._reading = reading
        self._signal = Signal()
        self.sentence = ""
        """What the last round has come to."""
        self._pause = _FIRST_PAUSE
        self._forced = removal_backoff.NEVER
        self._removed: tuple[LostPod, ...] = ()
        self._before: GatheredCase | None = None
        self._unlisted = False
        """Whether pods were removed, and those that are left are still to be listed."""
        self._follows = False
        """Whether the round before has carried out a step after which the reading still serves."""

    def wake(self) -> None:
        """Something is new about the node."""
        self._signal.set()

    async def run(self) -> None:
        """Rounds until the node is well."""
        while True:
            woken = self._signal.next()
            try:
                step = await self._reconcile()
                self._pause = _FIRST_PAUSE
                wait = self._next_delay(step)
            except (Conflict, RefusedForSafety) as error:
                self._log_sentence(f"decided anew: {error}")
                wait = self._backoff_delay(error)
            except LastcallError as error:
                asked = f"{error.request}: " if error.request else ""
                self._log_sentence(f"nothing can be done now: {asked}{error}")
                wait = self._backoff_delay(error)
            if wait is None:
                return
            if wait > 0:
                await self._wait_for_change(wait, woken)

    async def _wait_for_change(self, seconds: float, woken: "asyncio.Future[None]") -> None:
        """Until it is woken, or longer while the server is busy, if nothing is to do here, and the node is as it was.

        A look would be in the way of the calls for others: the pods of a node are listed at each look, which costs some
        servers a look at all pods of the cluster.
        """
        before, latest = self._watched_state(), self._clock.boottime() + LOOK_AT_REST
        while True:
            if not woken.done():
                await wait_first(woken, self._clock.sleep(seconds))
            left = latest - self._clock.boottime()
            if left <= 0 or not (self._is_idle and self._busy() and self._watched_state() == before):
                return
            woken, seconds = self._signal.next(), min(LOOK, left)

    def _watched_state(self) -> object:
        """What the watch has told of the node, as far as it makes a difference to one that is failed over."""
        knot = self._observing.tracked_nodes.get(self.name)
        if knot is None:
            return None
        node, seen = knot.node, knot.seen
        return (
            node.mark_text,
            node.spec,
            node.ready_condition.status,
            node.status.node_info,
            seen.observed,
            seen.heard,
            knot.choice,
        )

    @property
    def _is_idle(self) -> bool:
        """Whether the boot is over, and the next thing comes at no known time: another look is only to see what others do."""
        if self._unlisted:
            return True
        over = self.gathered is not None and self.gathered.case.is_boot_dead and self.gathered.case.mark is not None
        return over and isinstance(self.step, steps.Wait) and self.step.until is None

    @property
    def _call_rank(self) -> int:
        """Who has begun goes on before others begin; who only looks comes last."""
        if self._is_idle:
            return 2
        return 0 if self._follows else 1

    async def _reconcile(self) -> steps.Step:
        gathered = await self._gather_case()
        if gathered.removed and not isinstance(
            decision_table.decide(gathered.case, self._clock.boottime()), steps.Detach
        ):
            if self._busy():
                self._unlisted = True
                return steps.Wait("its pods are listed again as soon as the server has fewer of others to remove")
            gathered = await self._gather_case()
        self.gathered, self._unlisted = gathered, False
        for complaint in self._gathering.guard.new_complaints():
            log.warning("%s", complaint)
        now = self._clock.boottime()
        self._gathering.guard.observe_case(gathered.case)
        step = decision_table.decide(gathered.case, now)
        if isinstance(step, steps.Mark):
            self._gathering.guard.note_claim(self.name, step.mark)
        self._report_decision(step, gathered)
        knot = self._observing.tracked_nodes.get(self.name)
        if gathered.node is None:
            self._gathering.guard.forget_deleted_node(self.name, now)
        if not isinstance(step, steps.Wait | steps.Done) and knot is not None:
            await self._carry_out(step, gathered, knot.seen)
        return step

    async def _gather_case(self) -> GatheredCase:
        """Anew, but for what still serves after the step before."""
        before, self._before = self._before, None
        rank = self._call_rank  # by the step before, which is over as soon as this round begins
        if not self._follows:
            self._reading.drop()
        self._follows = False
        gathered = await self._gathering.build(
            self.name,
            self._devices,
            self._refusals,
            reading=self._reading,
            forced=self._forced,
            removed=self._removed,
            before=before,
            rank=rank,
        )
        case = gathered.case
        return replace(gathered, case=replace(case, replacements=await self._replacements.find_replacements(case)))

    async def _carry_out(self, step: steps.Step, gathered: GatheredCase, seen: NodeObservations) -> None:
        began = self._clock.boottime()
        subject = StepContext(
            gathered=gathered,
            reading=self._reading,
            seen=seen,
            devices=self._devices,
            refusals=self._refusals,
            rivals=self._gathering,
        )
        await self._acting.carry_out(step, subject)
        self._remember_step(step, gathered)
        self._tell(StepExecuted(node=self.name, step=step, seconds=self._clock.boottime() - began))
        if isinstance(step, steps.Detach):
            await self._clock.sleep(TOLD)
        if isinstance(step, steps.Unmark) and gathered.case.node:
            mark = gathered.case.node.mark
            if isinstance(mark, OwnerMark):
                self._gathering.guard.end_fencing(self.name, mark, began)

    def _remember_step(self, step: steps.Step, gathered: GatheredCase) -> None:
        """For the rounds to come, of a step that was carried out."""
        now = self._clock.boottime()
        self._follows = is_reading_reusable(step)
        if pod_list_reuse.is_list_reusable(step, gathered.pods, listed=gathered.listed, now=now):
            removed = gathered.removed or isinstance(step, steps.ForceDelete)
            self._before = replace(gathered, removed=removed)
        if isinstance(step, steps.ForceDelete):
            self._removed = merge_lost(self._removed, (pod.lost for pod in step.pods if pod.lost))
        if isinstance(step, steps.ForceDelete) and gathered.case.is_boot_dead:
            self._forced = removal_backoff.count_removal(self._forced, step.boot_id, now)
            self._tell(RemovalsRepeated(node=self.name, times=self._forced.times))

    def _next_delay(self, step: steps.Step) -> float | None:
        """Seconds until the next round; None: there is none."""
        if not isinstance(step, steps.Wait | steps.Done):
            return 0.0
        now = self._clock.boottime()
        marked = self.gathered is not None and self.gathered.node is not None and bool(self.gathered.node.mark_text)
        if not marked and not self._observing.is_in_trouble(self.name, now):
            return None
        look = LOOK if marked else LOOK_AT_REST
        until = step.until if isinstance(step, steps.Wait) else None
        return look if until is None else max(0.01, min(look, until - now))

    def _backoff_delay(self, error: LastcallError) -> float:
        pause, self._pause = self._pause, min(_LONGEST_PAUSE, 2 * self._pause)
        return max(pause, min(_MOST_PATIENCE, error.retry_after or 0.0) if isinstance(error, TooManyRequests) else 0.0)

    def _report_decision(self, step: steps.Step, gathered: GatheredCase) -> None:
        before, self.step = self.step, step
        self._log_sentence(f"{type(step).__name__}: {step.why}")
        if before != step:
            mark = gathered.case.node.mark if gathered.case.node else None
            uid = gathered.node.metadata.uid if gathered.node else ""
            owned = mark if isinstance(mark, OwnerMark) else None
            case, now = gathered.case, self._clock.boottime()
            observes = case.policy is not None and case.node is not None and case.policy.mode is FailoverMode.OBSERVE
            would = (
                observes
                and isinstance(step, steps.Wait)
                and _without_numbers(step.why) == _without_numbers(marking.mark_node(case, now).why)
            )
            self._tell(StepDecided(node=self.name, uid=uid, step=step, mark=owned, would=would, case=case))

    def _log_sentence(self, sentence: str) -> None:
        """In the log only if it says something else than how much time has passed."""
        if _without_numbers(sentence) != _without_numbers(self.sentence):
            log.info("%s: %s", self.name, sentence)
        self.sentence = sentence


def _without_numbers(sentence: str) -> str:
    """Without its numbers: how much time has passed, for instance."""
    return _NUMBER.sub("", sentence)
