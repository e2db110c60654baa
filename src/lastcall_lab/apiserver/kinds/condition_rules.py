"""Validation of status conditions (``metav1/validation.ValidateConditions``), pure."""

import re
from collections.abc import Iterable, Iterator

from lastcall.model import name_rules
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_LONGEST_REASON, _LONGEST_MESSAGE = 1024, 32 * 1024


def validate_conditions(conditions: Iterable[Object], path: str) -> Iterator[Cause]:
    """The violations in the conditions."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        kind = condition.get("type", "")
        if kind in seen:
            yield field_errors.duplicate(f"{path}[{index}].type", kind)
        seen.add(kind)
        yield from _condition(condition, f"{path}[{index}]")


def _condition(condition: Object, path: str) -> Iterator[Cause]:
    kind, reason = condition.get("type", ""), condition.get("reason", "")
    for wrong in name_rules.qualified_name_errors(kind):
        yield field_errors.invalid(f"{path}.type", kind, wrong)
    if condition.get("status") not in ("True", "False", "Unknown"):
        yield field_errors.not_supported(f"{path}.status", condition.get("status", ""), ["False", "True", "Unknown"])
    if condition.get("observedGeneration", 0) < 0:
        why = "must be greater than or equal to zero"
        yield field_errors.invalid(f"{path}.observedGeneration", condition["observedGeneration"], why)
    if not condition.get("lastTransitionTime"):
        yield field_errors.value_required(f"{path}.lastTransitionTime")
    if not reason:
        yield field_errors.value_required(f"{path}.reason")
    elif not re.fullmatch(_REASON, reason):
        why = (
            "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric"
            " characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',"
            f"  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
        )
        yield field_errors.invalid(f"{path}.reason", reason, why)
    if len(reason.encode()) > _LONGEST_REASON:
        yield field_errors.too_long(f"{path}.reason", _LONGEST_REASON)
    if len(condition.get("message", "").encode()) > _LONGEST_MESSAGE:
        yield field_errors.too_long(f"{path}.message", _LONGEST_MESSAGE)
