"""The next status of an Eviction (pure)."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from lastcall.guard.eviction_requests.decisions import eviction_conditions
from lastcall.guard.eviction_requests.decisions.responder_turns import (
    ResponderTurns,
    TurnEnd,
    list_responders,
    sort_responders,
    take_turns,
)
from lastcall.model.base import Facts
from lastcall.model.eviction_requests import (
    EvictablePod,
    EvictionCondition,
    EvictionConditionReason,
    EvictionIntent,
    EvictionRequest,
    EvictionStatus,
    ListedRequester,
    PodEviction,
    ResponderProgress,
    ResponderState,
    TargetResponder,
)

Reason = EvictionConditionReason

MOST_REQUESTERS = 100
"""So many may be listed (API validation)."""


class EvictionOutcome(Facts, frozen=True):
    """The status that has to be written; None if it is as it should be. ``again_at``: when time alone changes it."""

    status: EvictionStatus | None = None
    again_at: datetime | None = None


def decide_eviction(
    eviction: PodEviction,
    requests: Sequence[EvictionRequest],
    pod: EvictablePod | None,
    now: datetime,
    *,
    is_duplicate: bool = False,
    gone_at: datetime | None = None,
) -> EvictionOutcome:
    """What follows. ``requests`` are those for the same pod; ``pod`` is the one that has the target's name now.

    ``gone_at``: when it was first seen that the target is gone. ``is_duplicate``: an older Eviction of the pod goes on.
    """
    if eviction.is_over:
        return EvictionOutcome()
    target = pod if pod and pod.metadata.uid == eviction.uid_of_pod else None
    mistake = _find_mistake(eviction, target, is_duplicate=is_duplicate)
    is_gone = target is None or target.is_terminal
    is_given_up = bool(mistake) or (not is_gone and not any(one.is_wanted for one in requests))
    end = TurnEnd.GIVEN_UP if is_given_up else TurnEnd.TARGET_GONE if is_gone else None
    targets = sort_responders(eviction.status.target_responders) or list_responders(target)
    turns = take_turns(eviction, targets, now, end=end, ended_at=gone_at)
    status = EvictionStatus(
        conditions=_list_conditions(eviction, target, turns, end, mistake, now),
        observed_generation=eviction.metadata.generation or None,
        requesters=list_requesters(eviction, requests),
        target_responders=turns.targets,
        responders=tuple(_start(one, eviction, now) for one in turns.targets),
    )
    return EvictionOutcome(status=None if _is_same(status, eviction.status) else status, again_at=turns.again_at)


def _find_mistake(eviction: PodEviction, target: EvictablePod | None, *, is_duplicate: bool) -> str:
    if eviction.spec.target.pod is None:
        return "Unsupported target type."
    if is_duplicate:
        return "Active Eviction already exists for the same target."
    if target is not None and target.spec.scheduling_group is not None:
        return "Target pod references a SchedulingGroup. Eviction is currently not supported."
    return ""


def _list_conditions(
    eviction: PodEviction,
    target: EvictablePod | None,
    turns: ResponderTurns,
    end: TurnEnd | None,
    mistake: str,
    now: datetime,
) -> tuple[EvictionCondition, ...]:
    existing = eviction.status.conditions
    if mistake:
        return eviction_conditions.failed_conditions(existing, Reason.EVICTION_INVALID, mistake, now)
    if end is TurnEnd.GIVEN_UP:
        message = "No active requesters with eviction intent"
        return eviction_conditions.failed_conditions(existing, Reason.NO_REQUESTERS, message, now)
    if end is TurnEnd.TARGET_GONE and not turns.is_awaited:
        if target is None:
            return eviction_conditions.evicted_conditions(
                existing, Reason.POD_DELETED, "Target pod has been deleted", now
            )
        return eviction_conditions.evicted_conditions(
            existing, Reason.POD_TERMINAL, "Pod has reached terminal state", now
        )
    if turns.is_exhausted:
        message = "All responders have completed without evicting the target"
        return eviction_conditions.failed_conditions(existing, Reason.NO_FURTHER_RESPONDER, message, now)
    return eviction_conditions.awaited_conditions(existing, "", now)


def list_requesters(eviction: PodEviction, requests: Sequence[EvictionRequest]) -> tuple[ListedRequester, ...]:
    """Who requests, and who has requested, each once; beyond the limit those who have withdrawn are left out."""
    wanted = {one.spec.requester for one in requests if one.is_wanted}
    known = [one.name for one in eviction.status.requesters]
    order = dict.fromkeys([*known, *sorted(one.spec.requester for one in requests)])
    kept = sorted(order, key=lambda name: name not in wanted)[:MOST_REQUESTERS]
    return tuple(
        ListedRequester(name=name, intent=EvictionIntent.EVICTION if name in wanted else EvictionIntent.WITHDRAWN)
        for name in order
        if name in kept
    )


def _start(one: TargetResponder, eviction: PodEviction, now: datetime) -> ResponderProgress:
    """The controller's part of what is said of a responder: when its turn began."""
    before = eviction.find_progress(one.name)
    since = before.start_time if before else None
    if since is None and one.state is ResponderState.ACTIVE:
        since = now
    return ResponderProgress(name=one.name, start_time=since)


def _is_same(wanted: EvictionStatus, stored: EvictionStatus) -> bool:
    mine = tuple(ResponderProgress(name=one.name, start_time=one.start_time) for one in stored.responders)
    return _by_name(wanted) == _by_name(replace(stored, responders=mine))


def _by_name(status: EvictionStatus) -> EvictionStatus:
    """In an order of its own: the API server keeps the lists in any order."""
    return replace(
        status,
        conditions=tuple(sorted(status.conditions, key=lambda one: one.type)),
        requesters=tuple(sorted(status.requesters, key=lambda one: one.name)),
        target_responders=tuple(sorted(status.target_responders, key=lambda one: one.name)),
        responders=tuple(sorted(status.responders, key=lambda one: one.name)),
    )
