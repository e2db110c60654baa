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
    return sorted(found, key=lambda one: one.at)
