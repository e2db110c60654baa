"""How containers are ended: because somebody wants it, with their hooks, and in their time (pure)."""

from collections.abc import Iterator, Sequence

from lastcall_lab.simulation.container_lives import ContainerLife
from lastcall_lab.simulation.rules.base import SOON, Invariant, InvariantViolation
from lastcall_lab.simulation.rules.run_facts import RunFacts
from lastcall_lab.simulation.rules.termination_reasons import TerminationReason, TerminationReasons


def find_violations(facts: RunFacts) -> Iterator[InvariantViolation]:
    """Of each container that got a signal."""
    reasons = TerminationReasons(facts)
    for life in facts.lives:
        signals = [at for at in (life.term, life.kill) if at is not None]
        if signals:
            yield from _judge_life(facts, reasons, life, min(signals))


def _judge_life(
    facts: RunFacts, reasons: TerminationReasons, life: ContainerLife, at: float
) -> Iterator[InvariantViolation]:
    who, found = f"{facts.run.pod_name(life.uid)} on {life.node}", reasons.reasons_for(life, at)
    if not found:
        yield InvariantViolation(at, Invariant.UNASKED, f"{who}: ended, and nobody had asked for that")
        return
    if not _is_hook_over(facts, life, at, found) and at < min(one.hook for one in found):
        yield InvariantViolation(at, Invariant.PRE_STOP, f"{who}: {_hook_text(life)}, and there was time left")
    if life.kill is not None:
        term = None if _is_runtime_excused(facts, life, life.kill, found) else life.term
        if life.kill < (allowed := min(one.earliest_kill(term) for one in reasons.reasons_for(life, life.kill))):
            what = f"{who}: SIGKILL {allowed - life.kill:.1f} s before its time was over"
            yield InvariantViolation(life.kill, Invariant.KILL, what)


def _is_hook_over(facts: RunFacts, life: ContainerLife, at: float, found: Sequence[TerminationReason]) -> bool:
    """Its hook has run to its end, or there is none."""
    pod = facts.run.pods[life.uid]
    if not any(one.name == life.container and one.pre_stop for one in pod.spec.containers):
        return True
    takes = facts.run.hooks.get(life.uid, 0.0)
    if any(len(hook) > 1 and hook[1] <= at and hook[1] - hook[0] >= takes - SOON for hook in life.hooks):
        return True
    return _is_runtime_excused(facts, life, at, found)


def _is_runtime_excused(facts: RunFacts, life: ContainerLife, at: float, found: Sequence[TerminationReason]) -> bool:
    """A hook that cannot be run has failed, as in a kubelet, and SIGTERM comes later than it was due."""
    return facts.machines[life.node].no_runtime.overlaps(min(one.at for one in found), at)


def _hook_text(life: ContainerLife) -> str:
    if not life.hooks:
        return "its hook had not run"
    return "its hook was cut off" if len(life.hooks[-1]) > 1 else "its hook still ran"
