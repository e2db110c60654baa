"""Validation of a job's podFailurePolicy (``validatePodFailurePolicy``; pure)."""

from collections.abc import Collection, Iterator

from lastcall.model import name_rules
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_RULES, _VALUES, _PATTERNS = 20, 255, 20
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATES = ("False", "True", "Unknown")


def check_failure_policy(spec: Object, path: str) -> Iterator[Cause]:
    """The violations in a job's policy, if it has one."""
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return
    rules, place = policy.get("rules") or [], f"{path}.podFailurePolicy.rules"
    if len(rules) > _RULES:
        yield field_errors.too_many(place, len(rules), _RULES)
    pod = spec["template"]["spec"]
    containers = {one.get("name") for kind in ("containers", "initContainers") for one in pod.get(kind) or ()}
    indexed = spec.get("backoffLimitPerIndex") is not None
    for index, rule in enumerate(rules):
        yield from _rule(rule, f"{place}[{index}]", containers, indexed=indexed)


def _rule(rule: Object, path: str, containers: Collection[str | None], *, indexed: bool) -> Iterator[Cause]:
    action, codes, patterns = rule.get("action") or "", rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    if action == "FailIndex" and not indexed:
        yield field_errors.invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    yield from _choice(action, _ACTIONS, f"{path}.action")
    if codes is not None:
        yield from _codes(codes, f"{path}.onExitCodes", containers)
    if len(patterns) > _PATTERNS:
        yield field_errors.too_many(f"{path}.onPodConditions", len(patterns), _PATTERNS)
    for index, pattern in enumerate(patterns):
        yield from _pattern(pattern, f"{path}.onPodConditions[{index}]")
    if (codes is not None) == bool(patterns):
        why = "both OnExitCodes and OnPodConditions is not supported"
        why = why if patterns else "one of OnExitCodes and OnPodConditions is required"
        yield Cause("FieldValueInvalid", f"Invalid value: specifying {why}", path)


def _pattern(pattern: Object, path: str) -> Iterator[Cause]:
    if wrong := name_rules.qualified_name_error(pattern.get("type") or ""):
        yield field_errors.invalid(f"{path}.type", pattern.get("type") or "", wrong)
    yield from _choice(pattern.get("status") or "", _STATES, f"{path}.status")


def _codes(said: Object, path: str, containers: Collection[str | None]) -> Iterator[Cause]:
    operator, name, values = said.get("operator") or "", said.get("containerName"), said.get("values") or []
    yield from _choice(operator, _OPERATORS, f"{path}.operator")
    if name is not None and name not in containers:
        why = "must be one of the container or initContainer names in the pod template"
        yield field_errors.invalid(f"{path}.containerName", name, why)
    place = f"{path}.values"
    if not values:
        yield field_errors.invalid(place, values, "at least one value is required")
    elif len(values) > _VALUES:
        yield field_errors.too_many(place, len(values), _VALUES)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield field_errors.invalid(f"{place}[{index}]", value, "must not be 0 for the In operator")
        if value in values[:index]:
            yield field_errors.duplicate(f"{place}[{index}]", value)
    if values != sorted(values):
        yield field_errors.invalid(place, values, "must be ordered")


def _choice(value: str, supported: tuple[str, ...], path: str) -> Iterator[Cause]:
    if not value:
        quoted = " ".join(f'"{one}"' for one in supported)
        yield field_errors.value_required(path, f"valid values: [{quoted}]")
    elif value not in supported:
        yield field_errors.not_supported(path, value, supported)
