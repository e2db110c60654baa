"""The invariants of lastcall, checked against the ground truth of a run (pure)."""

from lastcall_lab.simulation.rules import beside_kubelet, drains, fencing, machines, overruns, pods, terminations
from lastcall_lab.simulation.rules.base import Invariant, InvariantViolation, RunRecord
from lastcall_lab.simulation.rules.run_facts import RunFacts

__all__ = ["Invariant", "InvariantViolation", "RunRecord", "find_violations"]


def find_violations(run: RunRecord) -> list[InvariantViolation]:
    """All violations, in the order of their times."""
    facts = RunFacts(run)
    found = [
        *pods.find_violations(facts),
        *terminations.find_violations(facts),
        *machines.find_violations(facts),
        *overruns.find_violations(facts),
        *beside_kubelet.find_violations(facts),
        *drains.find_violations(run),
        *fencing.find_violations(run),
        *(InvariantViolation(run.end, Invariant.WRITES, what) for what in run.lost),
        *(InvariantViolation(run.end, Invariant.ENDS, what) for what in run.left),
        *(InvariantViolation(run.end, Invariant.OTHERS, what) for what in run.changed),
    ]
    return sorted((one for one in found if not _is_excused(one, run)), key=lambda one: one.at)


_BY_OBJECTS = (
    Invariant.ONE_IDENTITY,
    Invariant.FORGOTTEN,
    Invariant.ONE_WRITER,
    Invariant.NO_DETACH_IN_USE,
    Invariant.WRITES,
    Invariant.UNASKED,
    Invariant.PRE_STOP,
    Invariant.KILL,
)
"""What follows from the objects of the API server, and so cannot be promised when these become what they were."""


def _is_excused(violation: InvariantViolation, run: RunRecord) -> bool:
    """Objects as they were before bring back pods that have ended, and forget pods that run (docs/known-limits.md)."""
    return violation.at >= run.set_back and violation.rule in _BY_OBJECTS
