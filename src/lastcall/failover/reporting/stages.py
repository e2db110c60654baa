"""The stage of a node's failover (pure): the current action or what is awaited, in terms that people use.

``decision_table.decide`` returns the next step, which is to wait for most of the time. The awaited event follows from
the node's situation.
"""

from enum import Enum

from lastcall.failover.decisions import remaining, suspicion
from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.decision_table import Situation, situation_of
from lastcall.failover.decisions.steps import Delete, Detach, Done, ForceDelete, Step, TaintNode, Wait
from lastcall.model.fence_policy import FailoverMode


class Stage(Enum):
    """The stages in order; the values appear in metrics. A node may return to an earlier stage, and skip some."""

    SUSPECT = "Suspect"
    """Silent, but not yet for as long as its policy says; from its last sign of life on."""
    PROVE = "Prove"
    """Silent for that long, and its boot is not proved to be over: fencers are called, limits and proofs awaited."""
    TAINT = "Taint"
    DELETE = "Delete"
    FORCE_DELETE = "ForceDelete"
    DETACH = "Detach"
    VERIFY = "Verify"
    """Waits for removals by other controllers, and for repeated attempts."""
    REPLACEMENT = "Replacement"
    """Nothing remains on it, and replacements of its pods are not Ready yet."""
    BACK = "Back"
    """Its return is awaited, or it is back and lastcall's taint or mark is not removed yet."""


_DONE_TO_IT = {
    TaintNode: Stage.TAINT,
    Delete: Stage.DELETE,
    ForceDelete: Stage.FORCE_DELETE,
    Detach: Stage.DETACH,
}


def stage_of(case: Case, step: Step, now: float) -> Stage | None:
    """The stage of a node with ``step``, which was decided from ``case``; None if no failover is under way.

    None also if nothing on it must be failed over, and if no controller may act: the policy is gone, or in mode Observe
    for a marked node.
    """
    where = situation_of(case)
    if where is Situation.BARRED or isinstance(step, Done):
        return None
    if type(step) in _DONE_TO_IT:
        return _DONE_TO_IT[type(step)]
    if where is Situation.FREE:
        return _unmarked_stage(case, now)
    if suspicion.is_awake(case, now):
        return Stage.BACK
    if where is Situation.BOOTED:
        return _unmarked_stage(case, now) or Stage.BACK
    return _marked_stage(case, step)


def silent_seconds(case: Case, now: float) -> float:
    """Seconds for which a node was in ``SUSPECT`` when another stage begins; it is observed closely only at the end."""
    quiet = now - case.quiet_since
    return min(quiet, case.policy.suspect_after) if case.policy else quiet


def _unmarked_stage(case: Case, now: float) -> Stage | None:
    """The stage of a node without a mark for its current boot."""
    if case.policy is None or not remaining.has_anything_to_remove(case):
        return None
    if case.is_boot_dead:
        return Stage.PROVE
    if suspicion.is_awake(case, now):
        return None
    return Stage.SUSPECT if suspicion.wait_for_silence(case, now) else Stage.PROVE


def _marked_stage(case: Case, step: Step) -> Stage | None:
    """The stage of a marked, silent node."""
    assert case.mark
    if case.policy is None or case.policy.mode is FailoverMode.OBSERVE:
        return None
    if case.mark.tainted and not remaining.has_our_taint(case):
        return Stage.BACK
    if not remaining.has_anything_to_remove(case):
        return Stage.BACK if all(case.replacements.values()) else Stage.REPLACEMENT
    if case.mark.powered_on:
        return Stage.BACK
    return Stage.VERIFY if case.is_boot_dead and isinstance(step, Wait) else Stage.PROVE
