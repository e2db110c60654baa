"""Whose turn it is among the responders of an eviction (pure).

The order is that of ``pkg/controller/evictionrequest``: one responder is active at a time, from the highest priority to the
lowest. It gives its turn away when it has completed, or has been silent for 20 minutes.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum

from msgspec.structs import replace

from lastcall.model.base import Facts
from lastcall.model.eviction_requests import (
    ENDED,
    EVICTOR,
    EVICTOR_PRIORITY,
    EvictablePod,
    PodEviction,
    ResponderProgress,
    ResponderState,
    TargetResponder,
)

HEARTBEAT_SECONDS = 1200.0
"""Silence after which a responder is passed over (``ResponderHeartbeatTimeout``; the API server holds it too)."""

COMPLETION_SECONDS = 5.0
"""How long an active responder may still report after the pod is gone (``GracefulCompletionDelay``)."""


class TurnEnd(Enum):
    """Why no other responder gets a turn."""

    TARGET_GONE = "target-gone"
    """The pod is gone, or has finished."""
    GIVEN_UP = "given-up"
    """No requester wants the eviction any more, or it is not possible."""


class ResponderTurns(Facts, frozen=True):
    """The responders with their new states."""

    targets: tuple[TargetResponder, ...]
    is_exhausted: bool = False
    """Whether all have had their turn."""
    again_at: datetime | None = None
    """When another state follows from silence alone."""
    is_awaited: bool = False
    """Whether the active responder is expected to report its end."""


def list_responders(pod: EvictablePod | None) -> tuple[TargetResponder, ...]:
    """The responders of a new eviction in the order of their turns: those of the pod, and the evictor."""
    declared = pod.spec.eviction_responders if pod else ()
    found = [TargetResponder(name=one.name, priority=one.priority) for one in declared]
    evictor = TargetResponder(name=EVICTOR, priority=EVICTOR_PRIORITY)
    return tuple(sort_responders([*found, evictor]))


def sort_responders(targets: Sequence[TargetResponder]) -> Sequence[TargetResponder]:
    """By priority; among equals by the labels of the domain from the top, then by the key."""
    return sorted(targets, key=_turn_key)


def _turn_key(one: TargetResponder) -> tuple[bool, int, list[str], str]:
    domain, _, key = one.name.partition("/")
    return (one.priority is None, -(one.priority or 0), domain.split(".")[::-1], key)


def take_turns(
    eviction: PodEviction,
    targets: Sequence[TargetResponder],
    now: datetime,
    *,
    end: TurnEnd | None,
    ended_at: datetime | None = None,
) -> ResponderTurns:
    """The next states of ``targets``, which are in the order of their turns.

    ``ended_at`` is when the end was first seen, if that is known.
    """
    active = next((index for index, one in enumerate(targets) if one.state is ResponderState.ACTIVE), None)
    if end is not None:
        return _end_turns(eviction, targets, active, now, end, ended_at or now)
    if active is None:
        return _begin_next(targets)
    state, again_at = _judge_active(eviction.find_progress(targets[active].name), now)
    if state is ResponderState.ACTIVE:
        return ResponderTurns(targets=tuple(targets), again_at=again_at)
    return _begin_next(_with_state(targets, active, state))


def _begin_next(targets: Sequence[TargetResponder]) -> ResponderTurns:
    """The first one that had no turn yet is active now."""
    index = next((index for index, one in enumerate(targets) if one.state not in ENDED), None)
    if index is None:
        return ResponderTurns(targets=tuple(targets), is_exhausted=True)
    return ResponderTurns(targets=tuple(_with_state(targets, index, ResponderState.ACTIVE)))


def _judge_active(progress: ResponderProgress | None, now: datetime) -> tuple[ResponderState, datetime | None]:
    if progress is None:
        return ResponderState.ACTIVE, None
    if progress.completion_time is not None:
        return ResponderState.COMPLETED, None
    heard = progress.heartbeat_time or progress.start_time or now
    overdue = heard + timedelta(seconds=HEARTBEAT_SECONDS)
    return (ResponderState.INTERRUPTED, None) if now >= overdue else (ResponderState.ACTIVE, overdue)


def _end_turns(
    eviction: PodEviction,
    targets: Sequence[TargetResponder],
    active: int | None,
    now: datetime,
    end: TurnEnd,
    ended_at: datetime,
) -> ResponderTurns:
    if active is None:
        return ResponderTurns(targets=tuple(targets))
    if end is TurnEnd.GIVEN_UP:
        return ResponderTurns(targets=tuple(_with_state(targets, active, ResponderState.CANCELED)))
    progress = eviction.find_progress(targets[active].name)
    if progress is not None and progress.completion_time is not None:
        return ResponderTurns(targets=tuple(_with_state(targets, active, ResponderState.COMPLETED)))
    latest = ended_at + timedelta(seconds=COMPLETION_SECONDS)
    if now < latest:
        return ResponderTurns(targets=tuple(targets), again_at=latest, is_awaited=True)
    return ResponderTurns(targets=tuple(_with_state(targets, active, ResponderState.INTERRUPTED)))


def _with_state(targets: Sequence[TargetResponder], index: int, state: ResponderState) -> list[TargetResponder]:
    return [replace(one, state=state) if at == index else one for at, one in enumerate(targets)]
