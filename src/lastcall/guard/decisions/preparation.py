"""The next step of one pod's preparation (pure).

The entry in the GuardPolicy's status is the whole state: whoever leads goes on from it. ``preparation_outcomes`` says
what becomes of the entry by a step.
"""

from datetime import datetime, timedelta
from enum import Enum

from lastcall.guard.decisions.nudge import is_nudge_wanted
from lastcall.guard.decisions.replacement import is_replaced
from lastcall.guard.decisions.requesters import abandoned_at
from lastcall.guard.decisions.reservations import pods_in_front
from lastcall.guard.decisions.verdict import is_ready
from lastcall.model.base import Facts
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod, PreparationState
from lastcall.model.pods import Pod

CHECK_SECONDS = 2.0
"""Between two questions how far the application is. What was ready is verified as often."""

NUDGE_SECONDS = 2.0
"""How long a ready pod waits for its controller to ask again by itself."""

FORGET_SECONDS = 600.0
"""How long the entry of a preparation that has ended is shown."""


class PreparationStep(Enum):
    """What is done next for a held pod."""

    WAIT = "wait"
    START = "start"
    """Ask whether the application is healthy; if it is, record the start, then prepare."""
    CHECK = "check"
    """Ask how far it is; prepare again what was lost."""
    NUDGE = "nudge"
    """Delete the pod, for the controller that asked for it."""
    CANCEL = "cancel"
    """Undo the preparation: the pod stays."""
    RELEASE = "release"
    """Ask whether the application is healthy again; if it is, end the preparation: the pod has been replaced.

    Nobody is asked if the guard is uninstalled.
    """
    FORGET = "forget"
    """Remove the entry."""


class PreparationTurn(Facts, frozen=True):
    """The step; for WAIT until when at most, and ``reason`` says what for."""

    step: PreparationStep
    until: datetime | None = None
    reason: str = ""
    is_over: bool = False
    """Whether the preparation has ended, so that nothing but a new request matters any more."""


def decide_preparation(
    held: HeldPod, policy: GuardPolicy, facts: GuardFacts, now: datetime, *, checked_at: datetime | None
) -> PreparationTurn:
    """The next step. ``checked_at`` is when this process last asked the provider about the pod, or None."""
    if held.state is PreparationState.UNKNOWN:
        return _wait(now, "a newer version of the guard prepares it")
    if held.next_attempt_at and now < held.next_attempt_at:
        return PreparationTurn(step=PreparationStep.WAIT, until=held.next_attempt_at, reason="tries again later")
    if held.state is PreparationState.RELEASED:
        return _decide_released(held, now)
    pod = next((one for one in facts.pods if one.metadata.uid == held.uid), None)
    if held.undo_requested_at:
        step = PreparationStep.CANCEL if pod else PreparationStep.RELEASE
        return PreparationTurn(step=step, reason="the guard is uninstalled")
    if pod is None:
        return _decide_gone(held, policy, facts, now)
    if pod.metadata.deletion_timestamp is not None:
        return _wait(now, "the pod is terminating")
    given_up = abandoned_at(held, policy)
    if given_up and now >= given_up:
        return PreparationTurn(step=PreparationStep.CANCEL, reason="nobody asks for its deletion any more")
    if held.prepared_at is None or held.state is PreparationState.UNHEALTHY:
        return _decide_start(held, pod, policy, facts, now)
    return _decide_check(held, pod, policy, facts, now, checked_at)


def _decide_released(held: HeldPod, now: datetime) -> PreparationTurn:
    forget = (held.released_at or now) + timedelta(seconds=FORGET_SECONDS)
    if held.released_at is None or now >= forget:
        return PreparationTurn(step=PreparationStep.FORGET)
    return PreparationTurn(step=PreparationStep.WAIT, until=forget, reason="released", is_over=True)


def _decide_gone(held: HeldPod, policy: GuardPolicy, facts: GuardFacts, now: datetime) -> PreparationTurn:
    if is_replaced(held, policy, facts):
        return PreparationTurn(step=PreparationStep.RELEASE, reason="its replacement is up")
    return _wait(now, "waits for its replacement")


def _decide_start(held: HeldPod, pod: Pod, policy: GuardPolicy, facts: GuardFacts, now: datetime) -> PreparationTurn:
    """A pod whose application was short of members has lost its place, and waits for one again."""
    if pods_in_front(pod, policy, facts):
        return _wait(now, "another pod of its application is in front")
    return PreparationTurn(step=PreparationStep.START)


def _decide_check(
    held: HeldPod, pod: Pod, policy: GuardPolicy, facts: GuardFacts, now: datetime, checked_at: datetime | None
) -> PreparationTurn:
    due = checked_at + timedelta(seconds=CHECK_SECONDS) if checked_at else now
    if now >= due:
        return PreparationTurn(step=PreparationStep.CHECK)
    if held.ready_at and is_nudge_wanted(held, pod, facts):
        nudge_at = held.ready_at + timedelta(seconds=NUDGE_SECONDS)
        if now >= nudge_at and is_ready(held, facts, now) and not pods_in_front(pod, policy, facts):
            return PreparationTurn(step=PreparationStep.NUDGE, reason=f"{held.requested_by} does not ask again")
        due = min(due, max(nudge_at, now))
    return PreparationTurn(step=PreparationStep.WAIT, until=due, reason=held.state.value.lower())


def _wait(now: datetime, reason: str) -> PreparationTurn:
    return PreparationTurn(step=PreparationStep.WAIT, until=now + timedelta(seconds=CHECK_SECONDS), reason=reason)
