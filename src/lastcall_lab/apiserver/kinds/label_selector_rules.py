"""Validation of label selectors in objects (``pkg/apis/meta/v1/validation``), pure."""

from collections.abc import Iterator

from lastcall.model import name_rules
from lastcall_lab.apiserver.values import field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object


def validate_selector(selector: Object | None, path: str) -> Iterator[Cause]:
    """Validates ``matchLabels`` and ``matchExpressions``; a missing selector is valid."""
    if not selector:
        return
    yield from object_meta.check_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        yield from _requirement(requirement, f"{path}.matchExpressions[{index}]")


def _requirement(requirement: Object, path: str) -> Iterator[Cause]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield field_errors.value_required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield field_errors.forbidden(
                f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
    else:
        yield field_errors.invalid(f"{path}.operator", operator, "not a valid selector operator")
    key = requirement.get("key", "")
    for wrong in name_rules.qualified_name_errors(key):
        yield field_errors.invalid(f"{path}.key", key, wrong)
    for index, value in enumerate(values):
        if wrong := name_rules.label_value_error(value):
            yield field_errors.invalid(f"{path}.values[{index}]", value, wrong)
