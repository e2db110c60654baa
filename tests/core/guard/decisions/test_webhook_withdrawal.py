"""When the guard's webhooks are withdrawn, and when they come back."""

import pytest

from lastcall.guard.decisions.webhook_withdrawal import (
    LONGEST_GAP,
    NEVER,
    STABLE_SECONDS,
    EndpointHistory,
    WithdrawalStep,
    decide_withdrawal,
)
from lastcall.model.guard_webhooks import CopyState, GuardWebhookState

WITHDRAW, RESTORE, WAIT = WithdrawalStep.WITHDRAW, WithdrawalStep.RESTORE, WithdrawalStep.WAIT
IN_FORCE = GuardWebhookState(in_force=True, is_behind_service=True, copy=CopyState.NONE)
ELSEWHERE = GuardWebhookState(in_force=True, is_behind_service=False, copy=CopyState.NONE)
APPLIED_AGAIN = GuardWebhookState(in_force=True, is_behind_service=True, copy=CopyState.WHOLE)
BESIDE_A_BROKEN_COPY = GuardWebhookState(in_force=True, is_behind_service=True, copy=CopyState.UNREADABLE)
WITHDRAWN = GuardWebhookState(in_force=False, is_behind_service=True, copy=CopyState.WHOLE)
EMPTY = GuardWebhookState(in_force=False, is_behind_service=True, copy=CopyState.NONE)
BROKEN = GuardWebhookState(in_force=False, is_behind_service=True, copy=CopyState.UNREADABLE)


def history(is_ready, seconds):
    return EndpointHistory(is_ready=is_ready, since=100.0, seen_at=100.0 + seconds)


@pytest.mark.parametrize(
    ("webhooks", "is_ready", "seconds", "after", "step", "words"),
    [
        (IN_FORCE, True, 600, 60, WAIT, "has a ready endpoint"),
        (IN_FORCE, False, 59, 60, WAIT, "no ready endpoint for 59s; the webhooks are withdrawn after 1m0s"),
        (IN_FORCE, False, 60, 60, WITHDRAW, "no ready endpoint for 1m0s: deletions are not held"),
        (IN_FORCE, False, 60, 120, WAIT, "withdrawn after 2m0s"),
        (IN_FORCE, False, 1e6, NEVER, WAIT, "the webhooks are never withdrawn"),
        (ELSEWHERE, False, 600, 60, WAIT, "not behind Service lastcall-system/lastcall-guard"),
        (APPLIED_AGAIN, False, 59, 60, WAIT, "withdrawn after"),
        (APPLIED_AGAIN, False, 60, 60, WITHDRAW, "deletions are not held"),
        (APPLIED_AGAIN, True, 0, 60, WAIT, "has a ready endpoint"),
        (APPLIED_AGAIN, True, STABLE_SECONDS, 60, RESTORE, "their copy is removed"),
        (BESIDE_A_BROKEN_COPY, True, STABLE_SECONDS, 60, RESTORE, "their copy is removed"),
        (WITHDRAWN, False, 600, 60, WAIT, "withdrawn until Service lastcall-system/lastcall-guard has a ready"),
        (WITHDRAWN, True, 0, 60, WAIT, "withdrawn until"),
        (WITHDRAWN, True, STABLE_SECONDS, 60, RESTORE, "deletions are held again"),
        (WITHDRAWN, True, STABLE_SECONDS, NEVER, RESTORE, "deletions are held again"),
        (WITHDRAWN, False, 600, NEVER, WAIT, "withdrawn until"),
        (EMPTY, True, 600, 60, WAIT, "has no webhooks, so nothing is guarded"),
        (BROKEN, True, 600, 60, WAIT, "cannot be read"),
    ],
)
def test_the_step(webhooks, is_ready, seconds, after, step, words):
    decision = decide_withdrawal(webhooks, history(is_ready, seconds), after=after)
    assert decision.step is step
    assert words in decision.sentence


@pytest.mark.parametrize("webhooks", [IN_FORCE, APPLIED_AGAIN, WITHDRAWN])
def test_without_a_look_nothing_is_done(webhooks):
    assert decide_withdrawal(webhooks, EndpointHistory(), after=60).step is WAIT


@pytest.mark.parametrize(
    ("webhooks", "is_ready", "after"), [(EMPTY, True, 60), (BROKEN, False, 60), (IN_FORCE, False, NEVER)]
)
def test_what_needs_a_person(webhooks, is_ready, after):
    assert decide_withdrawal(webhooks, history(is_ready, 600), after=after).needs_person
    assert not decide_withdrawal(WITHDRAWN, history(False, 600), after=60).needs_person


def test_the_time_counts_from_the_first_look_and_anew_after_each_change():
    found = EndpointHistory().add_look(is_ready=False, now=1000.0)
    assert found.seconds == 0
    found = found.add_look(is_ready=False, now=1005.0).add_look(is_ready=False, now=1010.0)
    assert found.seconds == 10
    found = found.add_look(is_ready=True, now=1015.0)
    assert found.seconds == 0
    assert found.add_look(is_ready=True, now=1019.0).seconds == 4


@pytest.mark.parametrize(("gap", "seconds"), [(LONGEST_GAP, 5 + LONGEST_GAP), (LONGEST_GAP + 0.1, 0)])
def test_a_long_gap_is_no_evidence(gap, seconds):
    found = EndpointHistory().add_look(is_ready=False, now=1000.0).add_look(is_ready=False, now=1005.0)
    assert found.add_look(is_ready=False, now=1005.0 + gap).seconds == pytest.approx(seconds)
