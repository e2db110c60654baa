"""Whether the guard's webhooks are withdrawn or put back (pure).

A webhook with ``failurePolicy: Fail`` that nobody answers refuses every deletion in guarded namespaces, also those by which
a cluster would recover. One with ``Ignore`` delays each of them. So webhooks without a guard are withdrawn after a while.
"""

from enum import Enum

from lastcall.model.base import Facts
from lastcall.model.duration import format_seconds
from lastcall.model.guard_webhooks import NAME, CopyState, GuardWebhookState
from lastcall.names import SYSTEM_NAMESPACE

DEFAULT_SECONDS = 60.0
"""Webhooks are withdrawn when no endpoint was ready for this long."""

SHORTEST_SECONDS = 10.0
"""A shorter time would withdraw webhooks at each restart of a guard's pod."""

NEVER = float("inf")

STABLE_SECONDS = 5.0
"""An endpoint has been ready for this long before webhooks are put back."""

LONGEST_GAP = 20.0
"""Seconds between two looks. After a longer gap, as of a suspended process, the time counts anew."""

_SERVICE = f"Service {SYSTEM_NAMESPACE}/{NAME}"
_APPLY = "apply the guard's manifests or its chart again"


class WithdrawalStep(Enum):
    """What is done now."""

    WITHDRAW = "Withdraw"
    RESTORE = "Restore"
    WAIT = "Wait"


class WithdrawalDecision(Facts, frozen=True):
    """The step, and a sentence that says why."""

    step: WithdrawalStep
    sentence: str
    needs_person: bool = False
    """Whether nothing gets better by itself."""


class EndpointHistory(Facts, frozen=True):
    """Since when the guard's Service has had a ready endpoint, or none, as this process has seen it without a gap."""

    is_ready: bool | None = None
    """None: not looked at yet."""
    since: float = 0.0
    seen_at: float = 0.0
    """Both in boottime."""

    def add_look(self, *, is_ready: bool, now: float) -> "EndpointHistory":
        """The history after another look."""
        is_same = self.is_ready is is_ready and now - self.seen_at <= LONGEST_GAP
        return EndpointHistory(is_ready=is_ready, since=self.since if is_same else now, seen_at=now)

    @property
    def seconds(self) -> float:
        """How long it has been so, until the last look."""
        return self.seen_at - self.since


def decide_withdrawal(webhooks: GuardWebhookState, endpoints: EndpointHistory, *, after: float) -> WithdrawalDecision:
    """The next step; ``after`` so many seconds without a ready endpoint webhooks are withdrawn, or NEVER.

    Webhooks that are withdrawn come back whatever ``after`` is.
    """
    is_stable = bool(endpoints.is_ready) and endpoints.seconds >= STABLE_SECONDS
    if not webhooks.in_force:
        return _decide_return(webhooks.copy, is_stable=is_stable)
    if not webhooks.is_behind_service:
        return _wait(f"the webhooks are not behind {_SERVICE}, so nothing tells whether a guard answers")
    if not endpoints.is_ready:
        return _decide_removal(endpoints.seconds, after)
    if webhooks.copy is not CopyState.NONE and is_stable:
        return _restore("the webhooks are in force again, written by another client: their copy is removed")
    return _wait(f"{_SERVICE} has a ready endpoint")


def _decide_return(copy: CopyState, *, is_stable: bool) -> WithdrawalDecision:
    if copy is CopyState.NONE:
        return _ask_person(f"the configuration has no webhooks, so nothing is guarded: {_APPLY}")
    if copy is CopyState.UNREADABLE:
        return _ask_person(f"the copy of the withdrawn webhooks cannot be read: {_APPLY}")
    if is_stable:
        return _restore(f"{_SERVICE} has a ready endpoint again: deletions are held again")
    return _wait(f"the webhooks are withdrawn until {_SERVICE} has a ready endpoint")


def _decide_removal(quiet: float, after: float) -> WithdrawalDecision:
    found = f"{_SERVICE} has had no ready endpoint for {format_seconds(int(quiet))}"
    if quiet >= after:
        sentence = f"{found}: deletions are not held until one is ready"
        return WithdrawalDecision(step=WithdrawalStep.WITHDRAW, sentence=sentence)
    if after == NEVER:
        return _ask_person(f"{found}; the webhooks are never withdrawn")
    return _wait(f"{found}; the webhooks are withdrawn after {format_seconds(after)}")


def _restore(sentence: str) -> WithdrawalDecision:
    return WithdrawalDecision(step=WithdrawalStep.RESTORE, sentence=sentence)


def _wait(sentence: str) -> WithdrawalDecision:
    return WithdrawalDecision(step=WithdrawalStep.WAIT, sentence=sentence)


def _ask_person(sentence: str) -> WithdrawalDecision:
    return WithdrawalDecision(step=WithdrawalStep.WAIT, sentence=sentence, needs_person=True)
