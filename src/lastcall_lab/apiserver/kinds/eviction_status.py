"""The status of an Eviction: responders take turns (``pkg/apis/lifecycle/validation.ValidateEvictionStatusUpdate``, pure).

Many programs write it. So the server itself holds the order: one responder is active at a time, it stays so until it has
completed or was silent for 20 minutes, and it alone changes what is said of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lastcall_lab.apiserver.kinds import eviction_responders
from lastcall_lab.apiserver.kinds.eviction_progress import SKEW_SECONDS, validate_responder_progress
from lastcall_lab.apiserver.values import field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

STATES = ("Active", "Canceled", "Completed", "Inactive", "Interrupted")
ENDED = ("Canceled", "Completed", "Interrupted")
"""The states in which a responder stays."""

HEARTBEAT_SECONDS = 20 * 60.0
"""A responder that was silent for so long is passed over."""

_FINAL = ("TargetEvicted", "Failed")
_INTENTS = ("Eviction", "Withdrawn")
_MOST_REQUESTERS, _MOST_RESPONDERS = 100, 11
_TARGETS, _RESPONDERS = "status.targetResponders", "status.responders"


class _Turn(NamedTuple):
    """In which states a responder may be now, and why."""

    states: Sequence[str]
    why: str


def validate_eviction_status(status: Object, before: Object, wall: float) -> Iterator[Cause]:
    """The violations in the new status. ``wall`` is the server's time."""
    yield from _validate_conditions(status, before)
    yield from _validate_requesters(status.get("requesters") or [])
    is_final = any(_is_true(one, kind) for one in (status, before) for kind in _FINAL)
    yield from _validate_targets(status, before, wall, is_final=is_final)
    yield from _validate_responders(status, before, wall)


def _is_true(status: Object, kind: str) -> bool:
    return any(one.get("type") == kind and one.get("status") == "True" for one in status.get("conditions") or ())


def _validate_conditions(status: Object, before: Object) -> Iterator[Cause]:
    conditions = status.get("conditions") or []
    for old in before.get("conditions") or ():
        if old["type"] in _FINAL and old.get("status") == "True" and old not in conditions:
            why = f"{old['type']} condition status cannot be reverted"
            yield field_errors.invalid("status.conditions", conditions, why)


def _validate_requesters(requesters: Sequence[Object]) -> Iterator[Cause]:
    path = "status.requesters"
    if len(requesters) > _MOST_REQUESTERS:
        yield field_errors.too_many(path, len(requesters), _MOST_REQUESTERS)
        return
    yield from eviction_responders.check_unique_names(requesters, path)
    for index, one in enumerate(requesters):
        yield from _validate_name(one, f"{path}[{index}]")
        yield from _validate_choice(one, "intent", _INTENTS, f"{path}[{index}]")


def _validate_name(one: Object, path: str) -> Iterator[Cause]:
    if name := one.get("name"):
        yield from eviction_responders.check_name(name, f"{path}.name")
    else:
        yield field_errors.value_required(f"{path}.name")


def _validate_choice(one: Object, field: str, supported: Sequence[str], path: str) -> Iterator[Cause]:
    if not (value := one.get(field)):
        yield field_errors.value_required(f"{path}.{field}")
    elif value not in supported:
        yield field_errors.not_supported(f"{path}.{field}", value, supported)


# -- whose turn it is --------------------------------------------------------------------------------------------------


def _validate_targets(status: Object, before: Object, wall: float, *, is_final: bool) -> Iterator[Cause]:
    targets = eviction_responders.sort_responders(status.get("targetResponders") or [])
    old = eviction_responders.sort_responders(before.get("targetResponders") or [])
    if len(targets) > _MOST_RESPONDERS:
        yield field_errors.too_many(_TARGETS, len(targets), _MOST_RESPONDERS)
        return
    doubled = [*eviction_responders.check_unique_names(targets, _TARGETS)]
    if doubled or (old and [*_check_kept_names(targets, old)]):
        yield from doubled or _check_kept_names(targets, old)
        return
    for index, (one, turn) in enumerate(zip(targets, _list_turns(targets, old, is_final=is_final), strict=True)):
        path = f"{_TARGETS}[{index}]"
        yield from _validate_name(one, path)
        yield from eviction_responders.check_chosen_priority(one, f"{path}.priority")
        yield from _validate_choice(one, "state", STATES, path)
        said = _find_named(status.get("responders") or (), one.get("name", ""))
        if said is None:
            why = f'"{one.get("name", "")}" has to be tracked in {_RESPONDERS} first'
            yield field_errors.invalid(path, one, why)
            continue
        yield from _validate_turn(one, turn, said, wall, f"{path}.state", is_final=is_final)


def _check_kept_names(targets: Sequence[Object], old: Sequence[Object]) -> Iterator[Cause]:
    if len(targets) != len(old):
        yield field_errors.invalid(_TARGETS, targets, "must preserve the same length and the same keys")
    elif {one.get("name") for one in targets} != {one.get("name") for one in old}:
        yield field_errors.invalid(_TARGETS, targets, "must preserve the same keys")
    elif any(one.get("priority") != was.get("priority") for one, was in zip(targets, old, strict=True)):
        yield field_errors.invalid(_TARGETS, targets, "field is immutable")


def _list_turns(targets: Sequence[Object], old: Sequence[Object], *, is_final: bool) -> Sequence[_Turn]:
    active = next((index for index, one in enumerate(old) if one["state"] == "Active"), -1)
    has_changed = active >= 0 and targets[active].get("state") != "Active"
    return [_find_turn(index, old, active, has_changed=has_changed, is_final=is_final) for index in range(len(targets))]


def _find_turn(index: int, old: Sequence[Object], active: int, *, has_changed: bool, is_final: bool) -> _Turn:
    """``active``: the index of the one that was active until now, or -1."""
    was = old[index]["state"] if old else ""
    if old and (index < active or (active < 0 and (is_final or was in ENDED))):
        return _Turn([was], "final state is immutable")
    if index == active and has_changed:
        return _Turn(ENDED, "this responder must reach a final state")
    if index == active:
        if is_final:
            return _Turn(ENDED, "the eviction request has finished processing")
        return _Turn(["Active"], "the eviction request stays active")
    if (index == 0 and not old) or (has_changed and index == active + 1):
        if is_final:
            return _Turn(["Inactive"], "the eviction request has finished processing")
        return _Turn(["Active"], "this responder is next in line")
    return _Turn(["Inactive"], "the previously active has not finished processing")


def _validate_turn(
    one: Object, turn: _Turn, said: Mapping[str, str], wall: float, path: str, *, is_final: bool
) -> Iterator[Cause]:
    state = one.get("state", "")
    if state not in turn.states:
        why = f"must be one of: {', '.join(turn.states)}, because {turn.why}"
        yield field_errors.invalid(path, state, why)
    if turn.states is not ENDED:
        return
    is_complete = "completionTime" in said
    if not is_complete and not is_final and _is_in_time(said, wall):
        reports = f"{_RESPONDERS}.heartbeatTime or {_RESPONDERS}.completionTime"
        why = f"must stay Active because the responder is in progress and it should report {reports}"
        yield field_errors.forbidden(path, why)
    if state == "Completed" and not is_complete:
        why = f"cannot become Completed because the responder didn't report {_RESPONDERS}.completionTime"
        yield field_errors.invalid(path, state, why)


def _is_in_time(said: Mapping[str, str], wall: float) -> bool:
    heard = said.get("heartbeatTime") or said.get("startTime")
    return bool(heard) and wall < object_meta.parse_seconds(heard or "") + HEARTBEAT_SECONDS - SKEW_SECONDS


# -- what responders say -----------------------------------------------------------------------------------------------


def _validate_responders(status: Object, before: Object, wall: float) -> Iterator[Cause]:
    targets = eviction_responders.sort_responders(status.get("targetResponders") or [])
    found = status.get("responders") or []
    if len(found) > _MOST_RESPONDERS:
        yield field_errors.too_many(_RESPONDERS, len(found), _MOST_RESPONDERS)
        return
    if len(targets) != len(found):
        why = "must be the same length as status.targetResponders and contain the same keys"
        yield field_errors.invalid(_RESPONDERS, found, why)
        return
    if {one.get("name") for one in targets} != {one.get("name") for one in found}:
        yield field_errors.invalid(_RESPONDERS, found, "must contain the same keys as status.targetResponders")
        return
    for index, target in enumerate(targets):
        name = target.get("name", "")
        said, old = _find_named(found, name), _find_named(before.get("responders") or (), name)
        yield from validate_responder_progress(
            said or {}, old, wall, f"{_RESPONDERS}[{index}]", is_active=target.get("state") == "Active"
        )


def _find_named(found: Sequence[Object], name: str) -> Object | None:
    return next((one for one in found if one.get("name", "") == name), None)
