"""The two conditions of Evictions and EvictionRequests (pure)."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from lastcall.model.eviction_requests import EVICTED, FAILED, EvictionCondition, EvictionConditionReason

Reason = EvictionConditionReason


def failed_conditions(
    existing: Sequence[EvictionCondition], reason: EvictionConditionReason, message: str, now: datetime
) -> tuple[EvictionCondition, ...]:
    """The conditions of an eviction that has failed; others of ``existing`` stay."""
    return _with_conditions(
        existing,
        now,
        _condition(FAILED, reason, message, is_true=True),
        _condition(EVICTED, Reason.EVICTION_FAILED, ""),
    )


def evicted_conditions(
    existing: Sequence[EvictionCondition], reason: EvictionConditionReason, message: str, now: datetime
) -> tuple[EvictionCondition, ...]:
    """The same of an eviction whose pod is gone, or has finished."""
    return _with_conditions(
        existing, now, _condition(EVICTED, reason, message, is_true=True), _condition(FAILED, Reason.SUCCEEDED, "")
    )


def awaited_conditions(
    existing: Sequence[EvictionCondition], message: str, now: datetime
) -> tuple[EvictionCondition, ...]:
    """The same of an eviction that goes on."""
    return _with_conditions(
        existing,
        now,
        _condition(FAILED, Reason.AWAITING_EVICTION, message),
        _condition(EVICTED, Reason.AWAITING_EVICTION, message),
    )


def copied_conditions(
    existing: Sequence[EvictionCondition], source: Sequence[EvictionCondition], now: datetime
) -> tuple[EvictionCondition, ...]:
    """The two conditions of ``source``, with the transition times of ``existing``."""
    return _with_conditions(existing, now, *(one for one in source if one.type in (EVICTED, FAILED)))


def _condition(kind: str, reason: EvictionConditionReason, message: str, *, is_true: bool = False) -> EvictionCondition:
    return EvictionCondition(type=kind, status="True" if is_true else "False", reason=reason.value, message=message)


def _with_conditions(
    existing: Sequence[EvictionCondition], now: datetime, *wanted: EvictionCondition
) -> tuple[EvictionCondition, ...]:
    kinds = {one.type for one in wanted}
    kept = [one for one in existing if one.type not in kinds]
    return (*kept, *(_with_transition(one, existing, now) for one in sorted(wanted, key=lambda one: one.type)))


def _with_transition(
    wanted: EvictionCondition, existing: Sequence[EvictionCondition], now: datetime
) -> EvictionCondition:
    before = next((one for one in existing if one.type == wanted.type), None)
    is_same = before is not None and before.status == wanted.status and before.last_transition_time is not None
    since = before.last_transition_time if before and is_same else now
    return replace(wanted, last_transition_time=since)
