"""What one responder says of its progress in an Eviction (``ValidateEvictionStatusResponder``, pure)."""

from collections.abc import Iterator

from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.object_meta import parse_seconds
from lastcall_lab.apiserver.values.request import Object

SKEW_SECONDS = 30.0
"""So far may the clocks of writers be from the server's."""
LONGEST_SECONDS = 10 * 365 * 86400.0
"""So far away may an expected completion be."""

_MOST_MESSAGE = 4000
_PRESENT = "must be set to the present time"


def validate_responder_progress(
    said: Object, old: Object | None, wall: float, path: str, *, is_active: bool
) -> Iterator[Cause]:
    """The violations in one entry of ``status.responders``; ``old`` is the entry until now."""
    if old is not None and said != old and not is_active:
        yield field_errors.invalid(path, said, "field is immutable")
        return
    before = old or {}
    yield from _validate_start(said, before, wall, path, is_active=is_active)
    yield from _validate_heartbeat(said, before, wall, path)
    yield from _validate_expectation(said, before, wall, path)
    yield from _validate_completion(said, before, wall, path)
    if len(said.get("message", "")) > _MOST_MESSAGE:
        yield field_errors.too_long(f"{path}.message", _MOST_MESSAGE)


def _validate_start(said: Object, before: Object, wall: float, path: str, *, is_active: bool) -> Iterator[Cause]:
    new, old = said.get("startTime"), before.get("startTime")
    if old and new != old:
        yield field_errors.invalid(f"{path}.startTime", new, "field is immutable")
    elif not new and is_active:
        yield field_errors.value_required(f"{path}.startTime", "is required for an active responder")
    elif new and not old and not _is_near(new, wall):
        yield field_errors.invalid(f"{path}.startTime", new, _PRESENT)


def _validate_heartbeat(said: Object, before: Object, wall: float, path: str) -> Iterator[Cause]:
    new, old = said.get("heartbeatTime"), before.get("heartbeatTime")
    where = f"{path}.heartbeatTime"
    if old and not new:
        yield field_errors.value_required(where, "is required once set")
    if not new or new == old:
        return
    if why := _find_order_fault(new, said, path):
        yield field_errors.invalid(where, new, why)
    elif old and parse_seconds(new) < parse_seconds(old):
        yield field_errors.invalid(where, new, "cannot be decreased")
    elif not _is_near(new, wall):
        yield field_errors.invalid(where, new, _PRESENT)


def _validate_expectation(said: Object, before: Object, wall: float, path: str) -> Iterator[Cause]:
    new = said.get("expectedCompletionTime")
    where = f"{path}.expectedCompletionTime"
    if not new or new == before.get("expectedCompletionTime"):
        return
    if why := _find_order_fault(new, said, path):
        yield field_errors.invalid(where, new, why)
    elif parse_seconds(new) < wall - SKEW_SECONDS:
        yield field_errors.invalid(where, new, "cannot be set to the past time")
    elif parse_seconds(new) > wall + LONGEST_SECONDS:
        yield field_errors.invalid(where, new, "must complete within 10 years")


def _validate_completion(said: Object, before: Object, wall: float, path: str) -> Iterator[Cause]:
    new, old = said.get("completionTime"), before.get("completionTime")
    where = f"{path}.completionTime"
    if old and new != old:
        yield field_errors.invalid(where, new, "field is immutable")
    elif new and (why := _find_order_fault(new, said, path)):
        yield field_errors.invalid(where, new, why)
    elif new and not old and not _is_near(new, wall):
        yield field_errors.invalid(where, new, _PRESENT)


def _find_order_fault(time: str, said: Object, path: str) -> str:
    """Why a time cannot be, seen from the responder's start; "" if it can."""
    start = said.get("startTime")
    if not start:
        return f"cannot be set before {path}.startTime is set"
    return f"must occur after {path}.startTime" if parse_seconds(time) < parse_seconds(start) else ""


def _is_near(text: str, wall: float) -> bool:
    return abs(parse_seconds(text) - wall) < SKEW_SECONDS
