"""What ``lastcall drain`` may do: whose pods it removes, when, and what becomes of cordons (pure).

Only what a drain itself has asked for and written is judged. ``drain_budgets`` judges what it does to budgets.
"""

from collections.abc import Iterator, Mapping, Sequence

from lastcall_lab.simulation.rules import drain_budgets
from lastcall_lab.simulation.rules.base import Invariant, InvariantViolation, RunRecord
from lastcall_lab.simulation.rules.drain_removals import DRAIN, PodRemoval, list_removals
from lastcall_lab.simulation.scenario import ScenarioWorkload, ScenarioWorkloadKind
from lastcall_lab.simulation.truth import CordonState, LeaseState, Noted

HEARD = 1.0
"""Seconds within which a watch without a fault tells of a change."""


def find_violations(run: RunRecord) -> Iterator[InvariantViolation]:
    """Of all drains."""
    if not run.drains:
        return
    yield from _judge_removals(run, {one.name: one for one in run.workloads})
    yield from _judge_requests(run)
    yield from drain_budgets.find_violations(run)
    yield from _judge_cordons(run.cordon_states)


def _judge_removals(run: RunRecord, workloads: Mapping[str, ScenarioWorkload]) -> Iterator[InvariantViolation]:
    """Whose node it is, which pods stay, who owns the node, and whether it is cordoned."""
    for removal in list_removals(run.pod_states):
        at, before, drain = removal.at, removal.before, run.drains[removal.by]
        what = f"{removal.by} has removed pod {before.name} of {before.node or 'no node'}"
        if before.node not in drain.nodes:
            yield InvariantViolation(at, Invariant.FOREIGN_POD, f"{what}, and drains {', '.join(drain.nodes)}")
        if before.app in workloads and workloads[before.app].kind is ScenarioWorkloadKind.DAEMON_SET:
            yield InvariantViolation(at, Invariant.FOREIGN_POD, f"{what}, which a DaemonSet makes again")
        holder, since = _find_holder(run.leases, before.node, at)
        if not holder.startswith(f"{removal.by}-") and not drain.lacks_leases:
            yield InvariantViolation(at, Invariant.ONE_OWNER, f"{what}, which {holder or 'nobody'} has by its Lease")
        elif not _was_cordoned(run, removal, since):
            yield InvariantViolation(at, Invariant.CORDONED, f"{what}, which is not cordoned")
        if removal.after.had_work and not _is_let_go(run, removal, since):
            yield InvariantViolation(at, Invariant.GUARDED, f"{what}, whose application was not ready to lose it")


def _find_holder(leases: Sequence[Noted[LeaseState]], node: str, at: float) -> tuple[str, float]:
    """Who has the node by its Lease at that time, and since when."""
    holder, since = "", 0.0
    for one in leases:
        if one.who == node and one.at <= at and one.what.holder != holder:
            holder, since = one.what.holder, one.at
    return holder, since


def _was_cordoned(run: RunRecord, removal: PodRemoval, since: float) -> bool:
    """Whether its node was so lately: somebody else may uncordon it, and the drain hear of it a moment later.

    If there was any fault on the way to the API server since the run began, the drain may not have heard of it at all.
    """
    lately = removal.at - HEARD if _is_clear(run.clear_network, since, removal.at) else since
    was_so = False
    for at, node, state in run.cordon_states:
        if node == removal.before.node and at <= removal.at:
            was_so = state.is_cordoned or (was_so and at > max(since, lately))
    return was_so


def _is_let_go(run: RunRecord, removal: PodRemoval, since: float) -> bool:
    """Whether the policy of the guard lets the pod go although its application is not ready.

    While no guard answers, that may be so for an eviction. Who deletes a pod must heed what its guard has said on it.
    """
    if not removal.after.is_unanswered:
        return False
    heard = removal.held_since <= removal.at - HEARD and _is_clear(run.clear_network, since, removal.at)
    return removal.after.is_evicted or not heard


def _is_clear(states: Sequence[Noted[bool]], since: float, until: float) -> bool:
    """Whether there was no fault on the network in all that time."""
    last = next((one.what for one in reversed(states) if one.at <= since), True)
    return last and all(one.what for one in states if since < one.at <= until)


def _judge_requests(run: RunRecord) -> Iterator[InvariantViolation]:
    """A run chooses its pods once, before its first request: later ones are none of its pods, whatever they are called.

    It may ask for nothing any more when its time, which begins at the latest with its Leases, is over.
    """
    arrived: dict[str, float] = {}
    for at, uid, state in run.pod_states:
        if state.node:
            arrived.setdefault(uid, at)
    begun: dict[str, float] = {}
    for at, who, asked in run.removal_requests:
        begun.setdefault(who, at)
        if not asked.uid:
            yield InvariantViolation(
                at, Invariant.UNPLANNED, f"{who} asks for {asked.name}, whichever pod has that name"
            )
        elif arrived.get(asked.uid, 0.0) > begun[who]:
            what = f"{who} asks for {asked.name} ({asked.uid}), which came when it had chosen its pods"
            yield InvariantViolation(at, Invariant.UNPLANNED, what)
        order = run.drains[who.rpartition("-")[0]]
        if at > _owns_since(run.leases, who, at) + order.stops_after:
            what = f"{who} asks for {asked.name}, and was to stop after {order.stops_after:g} s"
            yield InvariantViolation(at, Invariant.STOPPED, what)


def _owns_since(leases: Sequence[Noted[LeaseState]], who: str, at: float) -> float:
    """When it took its first Lease; now, if it has none."""
    return next((one.at for one in leases if one.what.holder == who), at)


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
