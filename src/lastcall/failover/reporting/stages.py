"""Which step of its failover a node is in (pure): what is done to it, or what is waited for, as a person would say it.

``course.decide`` says what is done next, which for most of the time is to wait. What for follows from where the node is.
"""

from enum import Enum

from lastcall.failover.decisions import remaining, suspicion
from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.decision_table import Situation, situation_of
from lastcall.failover.decisions.steps import Delete, Detach, Done, ForceDelete, Step, Taint, Wait
from lastcall.model.fence_policy import FailoverMode


class Stage(Enum):
    """In their order; the values are for metrics. A node may come back to an earlier one, and leave some out."""

    SUSPECT = "Suspect"
    """It is silent, and not yet for as long as its policy says: from its last sign of life on."""
    PROVE = "Prove"
    """It is silent for so long, and its boot is not proved to be over: fences are asked, limits and proofs waited for."""
    TAINT = "Taint"
    DELETE = "Delete"
    FORCE_DELETE = "ForceDelete"
    DETACH = "Detach"
    VERIFY = "Verify"
    """What others have to take away is waited for, and what was refused or comes anew."""
    REPLACEMENT = "Replacement"
    """Nothing is left on it, and what takes the place of its pods is not Ready yet."""
    BACK = "Back"
    """It is waited for, or it is back, and what is lastcall's on it has not gone yet."""


_DONE_TO_IT = {
    Taint: Stage.TAINT,
    Delete: Stage.DELETE,
    ForceDelete: Stage.FORCE_DELETE,
    Detach: Stage.DETACH,
}


def stage_of(case: Case, step: Step, now: float) -> Stage | None:
    """Where the node is with ``step``, which was decided from ``case``; None if its failover is not under way.

    That is so too where nothing on it has to be failed over, and where nobody is to act: the policy has gone, or only
    observes what is marked.
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
    """Seconds for which a node was in ``SUSPECT`` when something else begins: it is looked at closely only at the end."""
    quiet = now - case.quiet_since
    return min(quiet, case.policy.suspect_after) if case.policy else quiet


def _unmarked_stage(case: Case, now: float) -> Stage | None:
    """Nothing was begun for the boot that the node has now."""
    if case.policy is None or not remaining.has_anything_to_remove(case):
        return None
    if case.is_boot_dead:
        return Stage.PROVE
    if suspicion.is_awake(case, now):
        return None
    return Stage.SUSPECT if suspicion.wait_for_silence(case, now) else Stage.PROVE


def _marked_stage(case: Case, step: Step) -> Stage | None:
    """It is marked, and silent."""
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
