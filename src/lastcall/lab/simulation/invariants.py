"""What must never happen, judged by what machines, actors and storage tell (pure)."""

from lastcall.lab.simulation.rules import endings, fencing, machines, overruns, pods
from lastcall.lab.simulation.rules.base import Rule, Run, Violation
from lastcall.lab.simulation.rules.facts import Facts

__all__ = ["Rule", "Run", "Violation", "judge"]


def judge(run: Run) -> list[Violation]:
    """All violations, in the order of their times."""
    facts = Facts(run)
    found = [
        *pods.violations(facts),
        *endings.violations(facts),
        *machines.violations(facts),
        *overruns.violations(facts),
        *fencing.violations(run),
        *(Violation(run.end, Rule.WRITES, what) for what in run.lost),
        *(Violation(run.end, Rule.ENDS, what) for what in run.left),
        *(Violation(run.end, Rule.OTHERS, what) for what in run.changed),
    ]
    return sorted((one for one in found if not _excused(one, run)), key=lambda one: one.at)


_BY_OBJECTS = (
    Rule.ONE_IDENTITY,
    Rule.FORGOTTEN,
    Rule.ONE_WRITER,
    Rule.NO_DETACH_IN_USE,
    Rule.WRITES,
    Rule.UNASKED,
    Rule.PRE_STOP,
    Rule.KILL,
)
"""What follows from the objects of the API server, and so cannot be promised when these become what they were."""


def _excused(violation: Violation, run: Run) -> bool:
    """Objects as they were before bring back pods that have ended, and forget pods that run (docs/known-limits.md)."""
    return violation.at >= run.set_back and violation.rule in _BY_OBJECTS
