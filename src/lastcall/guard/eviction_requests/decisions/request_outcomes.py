"""What becomes of an EvictionRequest: its status, and whether it needs a new Eviction (pure)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from lastcall.guard.eviction_requests.decisions import eviction_conditions
from lastcall.model.base import Facts
from lastcall.model.eviction_requests import (
    EVICTED,
    FAILED,
    EvictablePod,
    EvictionCondition,
    EvictionConditionReason,
    EvictionRequest,
    EvictionRequestStatus,
    PodEviction,
    is_condition_true,
)

FIRST_RETRY_SECONDS = 60.0
LONGEST_RETRY_SECONDS = 1800.0
"""Between an Eviction that no responder could carry out and the next one: twice as long each time."""

_LONGEST_NAME = 253
_NEVER = datetime.min.replace(tzinfo=UTC)
_Reason = EvictionConditionReason


class RequestOutcome(Facts, frozen=True):
    """What has to be done; None and "" for nothing. ``again_at``: when time alone changes it."""

    status: EvictionRequestStatus | None = None
    new_eviction: str = ""
    """The name of the Eviction that has to be created."""
    again_at: datetime | None = None


def decide_request(
    request: EvictionRequest,
    requests: Sequence[EvictionRequest],
    evictions: Sequence[PodEviction],
    pod: EvictablePod | None,
    now: datetime,
) -> RequestOutcome:
    """What follows. ``requests`` are those for the same pod, this one too; ``evictions`` all of the namespace.

    ``pod`` is the one that has the target's name now.
    """
    if is_settled(request):
        return RequestOutcome()
    mine = [one for one in evictions if one.spec.target == request.spec.target]
    existing = request.status.conditions
    if mistake := _find_mistake(request, pod, has_evictions=bool(mine)):
        conditions = eviction_conditions.failed_conditions(existing, _Reason.EVICTION_INVALID, mistake, now)
        return RequestOutcome(status=_status(request, conditions))
    relevant = find_relevant(mine)
    if relevant is None or not relevant.status.conditions:
        message = "waiting for an Eviction to report on progress"
        conditions = eviction_conditions.awaited_conditions(existing, message, now)
    else:
        conditions = eviction_conditions.copied_conditions(existing, relevant.status.conditions, now)
    due = _find_due(mine, relevant, now) if any(one.is_wanted for one in requests) else None
    is_due = due is not None and now >= due
    return RequestOutcome(
        status=_status(request, conditions),
        new_eviction=name_eviction(request, evictions) if is_due else "",
        again_at=None if is_due else due,
    )


def find_relevant(evictions: Sequence[PodEviction]) -> PodEviction | None:
    """Of the Evictions of one pod: the last that has evicted it, else the oldest that goes on, else the last that failed."""
    evicted = [one for one in evictions if one.is_evicted]
    if evicted:
        return max(evicted, key=lambda one: _transition(one, EVICTED))
    active = [one for one in evictions if not one.is_over]
    if active:
        return min(active, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name))
    return max(evictions, key=lambda one: _transition(one, FAILED), default=None)


def name_eviction(request: EvictionRequest, evictions: Sequence[PodEviction]) -> str:
    """``pod-1-NAME``, or with the next number that is free: names of Evictions are for people, targets are by uid."""
    target = request.spec.target.pod.name if request.spec.target.pod else ""
    taken = {one.metadata.name for one in evictions}
    numbers = range(1, len(taken) + 2)
    names = (f"pod-{number}-{target}"[:_LONGEST_NAME].rstrip("-.") for number in numbers)
    return next(name for name in names if name not in taken)


def is_settled(request: EvictionRequest) -> bool:
    """Whether the pod is evicted, or never could be: nothing more is said of it."""
    conditions = request.status.conditions
    invalid = any(one.type == FAILED and one.reason == _Reason.EVICTION_INVALID.value for one in conditions)
    return is_condition_true(conditions, EVICTED) or (invalid and is_condition_true(conditions, FAILED))


def _find_mistake(request: EvictionRequest, pod: EvictablePod | None, *, has_evictions: bool) -> str:
    target = request.spec.target.pod
    if target is None:
        return "Unsupported target type."
    if not has_evictions and pod is None:
        return "Target pod not found."
    if not has_evictions and pod is not None and pod.metadata.uid != target.uid:
        return f"Target pod UID mismatch: expected {target.uid}, got {pod.metadata.uid}."
    if pod is not None and pod.metadata.uid == target.uid and pod.spec.scheduling_group is not None:
        return "Target pod references a SchedulingGroup. Eviction is currently not supported."
    return ""


def _find_due(mine: Sequence[PodEviction], relevant: PodEviction | None, now: datetime) -> datetime | None:
    """When the pod needs a new Eviction; None while it has one. After a withdrawal that is at once."""
    if relevant is None:
        return now
    if not relevant.is_over or relevant.is_evicted:
        return None
    futile = [one for one in mine if _failure_reason(one) != _Reason.NO_REQUESTERS.value]
    if relevant not in futile:
        return now
    seconds = min(FIRST_RETRY_SECONDS * 2.0 ** min(len(futile) - 1, 10), LONGEST_RETRY_SECONDS)
    return _transition(relevant, FAILED) + timedelta(seconds=seconds)


def _failure_reason(eviction: PodEviction) -> str:
    return next((one.reason for one in eviction.status.conditions if one.type == FAILED), "")


def _transition(eviction: PodEviction, kind: str) -> datetime:
    found = next((one.last_transition_time for one in eviction.status.conditions if one.type == kind), None)
    return found or _NEVER


def _status(request: EvictionRequest, conditions: tuple[EvictionCondition, ...]) -> EvictionRequestStatus | None:
    status = EvictionRequestStatus(
        conditions=conditions, observed_generation=request.metadata.generation or request.status.observed_generation
    )
    before = request.status
    same = sorted(before.conditions, key=lambda one: one.type) == sorted(conditions, key=lambda one: one.type)
    return None if same and status.observed_generation == before.observed_generation else status
