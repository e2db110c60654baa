"""What drains may do to budgets at each instant (pure).

A pod that serves may go if enough of its workload serve without it, whoever has taken the others. Of an eviction the
last word of the disruption controller counts too, less what drains have taken since: the API server cannot know of
losses that the controller has not seen. Of a deletion only the truth counts.
"""

import heapq
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lastcall_lab.simulation.rules.base import DrainTold, Invariant, InvariantViolation, RunRecord
from lastcall_lab.simulation.rules.drain_removals import is_removal
from lastcall_lab.simulation.scenario import ScenarioWorkload
from lastcall_lab.simulation.truth import BudgetState, Noted, PodState

_CONTROLLERS = "controllers"
"""The process whose word a budget's status is."""


def find_violations(run: RunRecord) -> Iterator[InvariantViolation]:
    """Of all budgets."""
    needed = {one.name: one.replicas - most for one in run.workloads if (most := unavailable_pods(one)) is not None}
    served = {app: _Served() for app in needed}
    known: dict[str, PodState] = {}
    changes: Iterable[Noted[Any]] = heapq.merge(run.budget_states, run.pod_states, key=lambda one: one.at)
    for at, who, what in changes:
        if isinstance(what, BudgetState):
            if who in served and what.by in ("", _CONTROLLERS):
                served[who].told = what.healthy
            continue
        before = known.get(who)
        known[who] = what
        if what.app not in served:
            continue
        now = served[what.app]
        takes = is_removal(before, what) and who in now.uids
        if takes and not _is_past_budgets(run.drains[what.by], what, at):
            left = now.count_without_one(is_evicted=what.is_evicted)
            if left < needed[what.app]:
                text = f"{what.by} has removed {what.name}: {left} pods of {what.app} serve without it"
                yield InvariantViolation(at, Invariant.BUDGET, f"{text}, and {needed[what.app]} must")
        now.note(who, what, taken=takes)


def unavailable_pods(workload: ScenarioWorkload) -> int | None:
    """How many pods of it may be unavailable at once by its budget; None if it has none.

    Percentages of both bounds are rounded up (``GetScaledValueFromIntOrPercent`` with ``roundUp``).
    """
    if workload.max_unavailable:
        return _count_of_bound(workload.max_unavailable, workload.replicas)
    if workload.min_available:
        return max(workload.replicas - _count_of_bound(workload.min_available, workload.replicas), 0)
    return None


def _count_of_bound(bound: str, replicas: int) -> int:
    if bound.endswith("%"):
        return math.ceil(int(bound.removesuffix("%")) * replicas / 100)
    return int(bound)


@dataclass
class _Served:
    """The pods of a workload that serve, and how many do by what the disruption controller and drains know."""

    uids: set[str] = field(default_factory=set)
    told: int = 0

    def count_without_one(self, *, is_evicted: bool) -> int:
        """How many serve when one of them goes."""
        return max(len(self.uids), self.told if is_evicted else 0) - 1

    def note(self, uid: str, state: PodState, *, taken: bool) -> None:
        """The pod has changed; ``taken``: by a drain, of which the API server knows."""
        if state.is_ready and not state.is_ending and not state.is_gone:
            self.uids.add(uid)
        else:
            self.uids.discard(uid)
        self.told -= taken


def _is_past_budgets(drain: DrainTold, state: PodState, at: float) -> bool:
    """Whether its time is over, after which pods are deleted. An eviction never passes a budget."""
    return at >= drain.deletes_from and not state.is_evicted
