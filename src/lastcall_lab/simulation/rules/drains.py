"""What ``lastcall drain`` may do: whose pods it removes, which budgets it keeps, and what becomes of cordons (pure).

Only what a drain itself has written is judged. What others do to a workload meanwhile excuses nothing but their own part:
a budget has as many removals of drains open as it allows, each until another pod of the workload has become ready.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lastcall_lab.simulation.rules.base import DrainTold, Invariant, InvariantViolation, RunRecord
from lastcall_lab.simulation.scenario import ScenarioWorkload, ScenarioWorkloadKind
from lastcall_lab.simulation.truth import CordonState, LeaseState, Noted, PodState

DRAIN = "drain-"
"""How the processes of drains are called: this and a number."""


def find_violations(run: RunRecord) -> Iterator[InvariantViolation]:
    """Of all drains."""
    if not run.drains:
        return
    workloads = {one.name: one for one in run.workloads}
    allowed = {name: most for name, one in workloads.items() if (most := unavailable_pods(one)) is not None}
    yield from _judge_removals(run, workloads)
    yield from _judge_budgets(run, allowed)
    yield from _judge_cordons(run.cordon_states)


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


def _removals(run: RunRecord) -> Iterator[tuple[float, PodState, PodState]]:
    """Each pod that a drain has asked to end: when, what it was, and what it became."""
    known: dict[str, PodState] = {}
    for at, uid, state in run.pod_states:
        before = known.get(uid)
        known[uid] = state
        if before and state.by.startswith(DRAIN) and state.is_ending and not before.is_ending:
            yield at, before, state


def _judge_removals(run: RunRecord, workloads: Mapping[str, ScenarioWorkload]) -> Iterator[InvariantViolation]:
    """Whose node it is, which pods stay, and who owns the node."""
    for at, before, after in _removals(run):
        drain, what = run.drains[after.by], f"{after.by} has removed pod {before.name} of {before.node or 'no node'}"
        if before.node not in drain.nodes:
            yield InvariantViolation(at, Invariant.FOREIGN_POD, f"{what}, and drains {', '.join(drain.nodes)}")
        if before.app in workloads and workloads[before.app].kind is ScenarioWorkloadKind.DAEMON_SET:
            yield InvariantViolation(at, Invariant.FOREIGN_POD, f"{what}, which a DaemonSet makes again")
        holder = _holder_at(run.leases, before.node, at)
        if not holder.startswith(f"{after.by}-"):
            yield InvariantViolation(at, Invariant.ONE_OWNER, f"{what}, which {holder or 'nobody'} has by its Lease")


def _holder_at(leases: Sequence[Noted[LeaseState]], node: str, at: float) -> str:
    return next((one.what.holder for one in reversed(leases) if one.who == node and one.at <= at), "")


@dataclass
class _Debt:
    """Removals that no pod has made up for yet."""

    open: int = 0
    ready: set[str] = field(default_factory=set)


def _judge_budgets(run: RunRecord, allowed: Mapping[str, int]) -> Iterator[InvariantViolation]:
    debts = {app: _Debt() for app in allowed}
    before: dict[str, PodState] = {}
    for at, uid, state in run.pod_states:
        old, debt = before.get(uid), debts.get(state.app)
        before[uid] = state
        if debt is None:
            continue
        removed = state.by.startswith(DRAIN) and state.is_ending and not (old and old.is_ending)
        serves = state.is_ready and not state.is_ending and not state.is_gone
        if serves and uid not in debt.ready:
            debt.ready.add(uid)
            debt.open = max(debt.open - 1, 0)
        elif not serves and uid in debt.ready:
            debt.ready.remove(uid)
            if removed and not _is_past_budgets(run.drains[state.by], state, at):
                debt.open += 1
                if debt.open > allowed[state.app]:
                    what = f"{state.by} has removed {state.name}: {debt.open} pods of {state.app} are away by drains"
                    yield InvariantViolation(at, Invariant.BUDGET, f"{what}, and {allowed[state.app]} may be")


def _is_past_budgets(drain: DrainTold, state: PodState, at: float) -> bool:
    """Whether its time is over, after which pods are deleted. An eviction never passes a budget."""
    return at >= drain.deletes_from and not state.is_evicted


def _judge_cordons(states: Sequence[Noted[CordonState]]) -> Iterator[InvariantViolation]:
    known: dict[str, CordonState] = {}
    for at, node, state in states:
        before = known.get(node, CordonState(is_cordoned=False, claims_cordon=None, by=""))
        known[node] = state
        if not state.by.startswith(DRAIN):
            continue
        if before.is_cordoned and not state.is_cordoned:
            yield InvariantViolation(at, Invariant.CORDON, f"{state.by} has uncordoned {node}")
        if before.claims_cordon is None and state.claims_cordon and before.is_cordoned:
            yield InvariantViolation(at, Invariant.CORDON, f"{state.by} takes a cordon of {node} for its own")
