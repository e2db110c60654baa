"""Validation of a Job's status (``validateJobStatus``, with the options that its strategy sets)."""

from collections.abc import Iterator

from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.values import field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_TERMINAL = ("Failed", "Complete", "FailureTarget")


def check_status(new: Object, old: Object) -> Iterator[Cause]:
    """The violations in the new status. Most rules apply only to changes of the request."""
    status, before = new.get("status") or {}, old.get("status") or {}
    yield from common_rules.check_not_negative(status, "status", *_COUNTS)
    true, was = _true(status), _true(before)
    if status.get("conditions") != before.get("conditions"):
        yield from _conditions(true)
    yield from _times(status, before, finished=bool(true & {"Complete", "Failed"}), complete="Complete" in true)
    for name in _TERMINAL:
        if name in was and name not in true:
            yield _conditions_refused(f"cannot disable the terminal {name}=True condition")
    for name in ("failed", "succeeded"):
        if (status.get(name) or 0) < (before.get(name) or 0):
            yield field_errors.invalid(f"status.{name}", status.get(name) or 0, f"cannot decrease the {name} counter")


def _conditions(true: set[str]) -> Iterator[Cause]:
    complete, failed, met, target = (
        name in true for name in ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
    )
    said = [
        (complete and failed, "cannot set Complete=True and Failed=true conditions"),
        (complete and target, "cannot set Complete=True and FailureTarget=true conditions"),
        (failed and not target, "cannot set Failed=True condition without the FailureTarget=true condition"),
        (complete and not met, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"),
        (met and failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        (met and target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
    ]
    yield from (_conditions_refused(why) for wrong, why in said if wrong)


def _times(status: Object, before: Object, *, finished: bool, complete: bool) -> Iterator[Cause]:
    start, end = status.get("startTime"), status.get("completionTime")
    if end and not complete:
        why = "cannot set completionTime when there is no Complete=True condition"
        yield field_errors.invalid("status.completionTime", end, why)
    if complete and not end:
        yield field_errors.value_required("status.completionTime", "completionTime is required for Complete jobs")
    if start and end and object_meta.parse_seconds(end) < object_meta.parse_seconds(start):
        yield field_errors.invalid("status.completionTime", end, "completionTime cannot be set before startTime")
    if finished and status.get("active"):
        yield field_errors.invalid("status.active", status["active"], "active>0 is invalid for finished job")
    if finished and not start:
        yield field_errors.value_required("status.startTime", "startTime is required for finished job")
    if finished and status.get("terminating"):
        why = "terminating>0 is invalid for finished job"
        yield field_errors.invalid("status.terminating", status["terminating"], why)
    if (status.get("ready") or 0) > (status.get("active") or 0):
        yield field_errors.invalid("status.ready", status.get("ready") or 0, "cannot set more ready pods than active")
    if end and before.get("completionTime") and end != before["completionTime"]:
        yield field_errors.invalid("status.completionTime", end, "completionTime cannot be mutated")


def _true(status: Object) -> set[str]:
    return {one.get("type", "") for one in status.get("conditions") or () if one.get("status") == "True"}


def _conditions_refused(why: str) -> Cause:
    """Go omits the value in these messages."""
    return Cause("FieldValueInvalid", f"Invalid value: {why}", "status.conditions")
