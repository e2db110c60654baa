"""How containers are ended: because somebody wants it, with their hooks, and in their time (pure)."""

from collections.abc import Iterator, Sequence

from lastcall.lab.simulation.lives import Life
from lastcall.lab.simulation.rules.base import SOON, Rule, Violation
from lastcall.lab.simulation.rules.facts import Facts
from lastcall.lab.simulation.rules.reasons import Reason, Reasons


def violations(facts: Facts) -> Iterator[Violation]:
    """Of each container that got a signal."""
    reasons = Reasons(facts)
    for life in facts.lives:
        signals = [at for at in (life.term, life.kill) if at is not None]
        if signals:
            yield from _judge(facts, reasons, life, min(signals))


def _judge(facts: Facts, reasons: Reasons, life: Life, at: float) -> Iterator[Violation]:
    who, found = f"{facts.run.name(life.uid)} on {life.node}", reasons.of(life, at)
    if not found:
        yield Violation(at, Rule.UNASKED, f"{who}: ended, and nobody had asked for that")
        return
    if not _prepared(facts, life, at, found) and at < min(one.hook for one in found):
        yield Violation(at, Rule.PRE_STOP, f"{who}: {_hook(life)}, and there was time left")
    if life.kill is not None:
        term = None if _no_runtime(facts, life, life.kill, found) else life.term
        if life.kill < (allowed := min(one.kill_at(term) for one in reasons.of(life, life.kill))):
            what = f"{who}: SIGKILL {allowed - life.kill:.1f} s before its time was over"
            yield Violation(life.kill, Rule.KILL, what)


def _prepared(facts: Facts, life: Life, at: float, found: Sequence[Reason]) -> bool:
    """Its hook has run to its end, or there is none."""
    pod = facts.run.pods[life.uid]
    if not any(one.name == life.container and one.pre_stop for one in pod.spec.containers):
        return True
    takes = facts.run.hooks.get(life.uid, 0.0)
    if any(len(hook) > 1 and hook[1] <= at and hook[1] - hook[0] >= takes - SOON for hook in life.hooks):
        return True
    return _no_runtime(facts, life, at, found)


def _no_runtime(facts: Facts, life: Life, at: float, found: Sequence[Reason]) -> bool:
    """A hook that cannot be run has failed, as in a kubelet, and SIGTERM comes later than it was due."""
    return facts.machines[life.node].no_runtime.touch(min(one.at for one in found), at)


def _hook(life: Life) -> str:
    if not life.hooks:
        return "its hook had not run"
    return "its hook was cut off" if len(life.hooks[-1]) > 1 else "its hook still ran"
