"""The Events that tell a person how a preparation goes (pure)."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import Enum

from lastcall import names
from lastcall.model.base import Facts
from lastcall.model.foreign_text import plain_text
from lastcall.model.guard_policy import GuardPolicy, HeldPod, PreparationState


class GuardEventReason(Enum):
    """The ``reason`` of an Event on the pod and its owner."""

    PREPARING = names.E_PREPARING
    READY = names.E_READY
    STALLED = names.E_STALLED
    UNHEALTHY = names.E_UNHEALTHY
    RELEASED = names.E_RELEASED
    HOLD_LIMIT = names.E_HOLD_LIMIT

    @property
    def is_warning(self) -> bool:
        """Whether a person is needed."""
        return self in (GuardEventReason.STALLED, GuardEventReason.UNHEALTHY, GuardEventReason.HOLD_LIMIT)


class GuardEvent(Facts, frozen=True):
    """One Event."""

    reason: GuardEventReason
    message: str


_BY_STATE = {
    PreparationState.PREPARING: GuardEventReason.PREPARING,
    PreparationState.READY: GuardEventReason.READY,
    PreparationState.STALLED: GuardEventReason.STALLED,
    PreparationState.UNHEALTHY: GuardEventReason.UNHEALTHY,
    PreparationState.RELEASED: GuardEventReason.RELEASED,
}


def list_events(before: HeldPod, after: HeldPod, policy: GuardPolicy) -> Iterator[GuardEvent]:
    """What is told about a change of an entry; nothing as long as the state stays the same.

    Of a state that a newer version has written, that version tells.
    """
    is_start = after.prepared_at is not None and before.prepared_at is None
    if (after.state is not before.state or is_start) and after.state in _BY_STATE:
        yield GuardEvent(reason=_BY_STATE[after.state], message=_describe(after, policy))


def is_limit_exceeded(held: HeldPod, policy: GuardPolicy, now: datetime) -> bool:
    """Whether the pod has been held for longer than ``holdLimit``, of which a person is told once."""
    limit = policy.spec.hold_limit_seconds
    if limit is None or held.since is None or held.state in (PreparationState.RELEASED, PreparationState.UNKNOWN):
        return False
    return now - held.since >= timedelta(seconds=limit)


def describe_limit(policy: GuardPolicy) -> GuardEvent:
    """The Event about it."""
    then = "its deletion is allowed" if policy.spec.on_limit.value == "Allow" else "it is held on"
    text = f"held by GuardPolicy {policy.name} for longer than {policy.spec.hold_limit}: {then}"
    return GuardEvent(reason=GuardEventReason.HOLD_LIMIT, message=text)


def _describe(held: HeldPod, policy: GuardPolicy) -> str:
    by = f", requested by {plain_text(held.requested_by)}" if held.requested_by else ""
    what = {
        PreparationState.PREPARING: f"its application prepares{by}",
        PreparationState.READY: f"its application is ready{by}",
        PreparationState.STALLED: "the preparation makes no progress and needs a person",
        PreparationState.UNHEALTHY: "its application is short of members, so nothing is prepared",
        PreparationState.RELEASED: "the preparation has ended",
    }[held.state]
    said = f": {plain_text(held.message)}" if held.message else ""
    return f"GuardPolicy {policy.name}: {what}{said}"
