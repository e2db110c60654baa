"""The reconciler of one node in trouble: builds the Case, decides and executes, until nothing is left to do."""

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
"""Seconds between two rounds for a node under failover: pods and replacements are not watched."""
LOOK_AT_REST = 30.0
"""The same for a node without a mark, and the longest wait while the server is busy with other nodes."""
TOLD = 0.1
"""Seconds for the watch to deliver deleted attachments: an earlier round would request their deletion again."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
"""Seconds after a failed round, and after many."""
_MOST_PATIENCE = 60.0
"""The longest ``Retry-After`` that is obeyed: a webhook or proxy may send any value."""

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(h|m|s|ms)?")

log = logging.getLogger(__name__)


class NodeReconciler:
    """Reconciles one node. ``wake`` starts a round at once. ``run`` returns when the node is healthy or gone."""

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
        """``busy``: whether calls that remove pods and volumes of any node wait for a slot."""
        self.name = name
        self.step: steps.Step | None = None
        self.gathered: GatheredCase | None = None
        """The input of the last decision; None before the first."""
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
        """The result of the last round."""
        self._pause = _FIRST_PAUSE
        self._forced = removal_backoff.NEVER
        self._removed: tuple[LostPod, ...] = ()
        self._before: GatheredCase | None = None
        self._unlisted = False
        """Pods were removed, and the remaining ones are not listed yet."""
        self._follows = False
        """The previous round executed a step after which its read is still valid."""

    def wake(self) -> None:
        """Requests a round, after a change of the node."""
        self._signal.set()

    async def run(self) -> None:
        """Runs rounds until the node is healthy."""
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
        """Waits until woken; longer while the server is busy, if this node is idle and unchanged.

        A round would delay the calls for other nodes: each round lists the node's pods, for which some servers scan all
        pods of the cluster.
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
        """The watched state of the node that matters during its failover."""
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
        """Whether the boot is over and no next action is scheduled: a round would only observe other controllers."""
        if self._unlisted:
            return True
        over = self.gathered is not None and self.gathered.case.is_boot_dead and self.gathered.case.mark is not None
        return over and isinstance(self.step, steps.Wait) and self.step.until is None

    @property
    def _call_rank(self) -> int:
        """Nodes in progress come before new ones; nodes that only observe come last."""
        if self._is_idle:
            return 2
        return 0 if self._follows else 1

    async def _reconcile(self) -> steps.Step:
        if self._is_emptied and self._busy():
            return self._postpone_list()
        gathered = await self._gather_case()
        if gathered.removed and not isinstance(
            decision_table.decide(gathered.case, self._clock.boottime()), steps.Detach
        ):
            if self._busy():
                return self._postpone_list()
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

    @property
    def _is_emptied(self) -> bool:
        """Whether the previous steps have removed the pods and the watch shows no attachment: only a list is due."""
        return (
            self._before is not None and self._before.removed and not tuple(self._observing.attachments_of(self.name))
        )

    def _postpone_list(self) -> steps.Wait:
        """Frees the server for the removal of other nodes' pods; the next round reads everything anew."""
        self._unlisted, self._before, self._follows = True, None, False
        return steps.Wait("its pods are listed again as soon as the server has fewer of others to remove")

    async def _gather_case(self) -> GatheredCase:
        """Builds the Case, reusing what is still valid after the previous step."""
        before, self._before = self._before, None
        rank = self._call_rank  # follows from the previous step, which is reset below
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
        """Keeps the results of an executed step for later rounds."""
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
        """Seconds until the next round; None: no further round."""
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
        """Logs a sentence only if it differs by more than elapsed time."""
        if _without_numbers(sentence) != _without_numbers(self.sentence):
            log.info("%s: %s", self.name, sentence)
        self.sentence = sentence


def _without_numbers(sentence: str) -> str:
    """The sentence without numbers, such as elapsed time."""
    return _NUMBER.sub("", sentence)
