"""The rules for label selectors in objects (``pkg/apis/meta/v1/validation``), pure."""

from collections.abc import Iterator

from lastcall.lab.apiserver import fields, meta, names
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause


def validate_selector(selector: Object | None, path: str) -> Iterator[Cause]:
    """``matchLabels`` and ``matchExpressions``; no selector at all is good."""
    if not selector:
        return
    yield from meta.check_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        yield from _requirement(requirement, f"{path}.matchExpressions[{index}]")


def _requirement(requirement: Object, path: str) -> Iterator[Cause]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield fields.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield fields.forbidden(
                f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
    else:
        yield fields.invalid(f"{path}.operator", operator, "not a valid selector operator")
    key = requirement.get("key", "")
    for wrong in names.qualified_faults(key):
        yield fields.invalid(f"{path}.key", key, wrong)
    for index, value in enumerate(values):
        if wrong := names.label_value(value):
            yield fields.invalid(f"{path}.values[{index}]", value, wrong)
