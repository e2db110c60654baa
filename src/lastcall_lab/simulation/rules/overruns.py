"""That no pod gets more time than it asks for, or than its phase has: later phases would pay for it (pure).

This is lastcall's promise alone: where a kubelet ends the pods, one that ignores SIGTERM may outlive its phase.
"""

from collections.abc import Iterator

from lastcall_lab.simulation.rules.arithmetic import AFTER_TERM, share_seconds
from lastcall_lab.simulation.rules.base import MARGIN, SOON, Invariant, InvariantViolation
from lastcall_lab.simulation.rules.run_facts import RunFacts, ShutdownHistory


def find_violations(facts: RunFacts) -> Iterator[InvariantViolation]:
    """Of each shutdown that an agent carries out without trouble."""
    if not facts.run.plan or not facts.run.bounded:
        return
    for shutdown in facts.shutdowns:
        if not (shutdown.may_be_stale or shutdown.cancelled or shutdown.noticed > shutdown.at):
            yield from _judge_shutdown(facts, shutdown)


def _judge_shutdown(facts: RunFacts, shutdown: ShutdownHistory) -> Iterator[InvariantViolation]:
    machine = facts.machines[shutdown.node]
    starts = _phase_starts(facts, shutdown)
    for life in facts.lives_on(shutdown.node):
        index = facts.phase_of_pod(life.uid)
        began = life.first_signal_since(shutdown.at)
        if began is None or index not in starts or not life.is_alive_at(shutdown.at):
            continue
        start = starts[index]
        phase = start + max(_longest_phase_seconds(facts, shutdown, index, start), MARGIN)
        latest = min(phase, began + facts.run.grace_seconds(life.uid) + AFTER_TERM) + SOON
        outlived = shutdown.until > latest and (life.ended is None or life.ended > latest)
        if outlived and not machine.is_troubled(shutdown.at, latest):
            what = f"{facts.run.pod_name(life.uid)} on {life.node} still ran when its time was over"
            yield InvariantViolation(
                latest, Invariant.OVERRUN, f"{what}, {latest - shutdown.at:.1f} s after the button"
            )


def _longest_phase_seconds(facts: RunFacts, shutdown: ShutdownHistory, index: int, start: float) -> float:
    """What the phase may take at the most: phases that have no pod leave it their time."""
    busy = {facts.phase_of_pod(life.uid) for life in facts.lives_on(shutdown.node) if life.is_alive_at(start)}
    plan = facts.run.plan or ()
    coming = [
        (one.priority, float(one.seconds)) for at, one in enumerate(plan) if at == index or (at > index and at in busy)
    ]
    return share_seconds(coming, facts.lock_deadline(shutdown, shutdown.at) - start)[0]


def _phase_starts(facts: RunFacts, shutdown: ShutdownHistory) -> dict[int, float]:
    """When each phase began; pods that were to end anyway do not show it."""
    found: dict[int, float] = {}
    for life in facts.lives_on(shutdown.node):
        at = life.first_signal_since(shutdown.at)
        if (
            at is None
            or at > shutdown.until
            or not life.is_alive_at(shutdown.at)
            or any(one.at <= at for one in facts.requests_of_others(life, shutdown))
        ):
            continue
        index = facts.phase_of_pod(life.uid)
        found[index] = min(at, found.get(index, at))
    return found
