"""``matchConstraints``, ``matchResources`` and ``matchConditions`` of admission (``pkg/apis/admissionregistration``), pure."""

from collections.abc import Iterator, Sequence

from lastcall.model import name_rules
from lastcall_lab.apiserver.cel.admission_variables import DeclaredVariables
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.kinds.webhook_rules import check_rule
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_MOST_CONDITIONS = 64
_MUTABLE = ("*", "CONNECT", "CREATE", "UPDATE")
"""Operations that a mutating policy may match."""


def default_resources(said: Object | None) -> None:
    """Sets the defaults (``SetDefaults_MatchResources``)."""
    if said is None:
        return
    common_rules.fill_missing(said, matchPolicy="Equivalent")
    for name in ("namespaceSelector", "objectSelector"):
        if said.get(name) is None:
            said[name] = {}
    for rule in (*(said.get("resourceRules") or ()), *(said.get("excludeResourceRules") or ())):
        common_rules.fill_missing(rule, scope="*")


def check_resources(said: Object, path: str, *, mutating: bool) -> Iterator[Cause]:
    """The violations (``validateMatchResources``)."""
    yield from common_rules.check_one_of(said["matchPolicy"], f"{path}.matchPolicy", "Equivalent", "Exact")
    yield from validate_selector(said["namespaceSelector"], f"{path}.namespaceSelector")
    yield from validate_selector(said["objectSelector"], f"{path}.objectSelector")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(said.get(name) or ()):
            yield from _check_names(rule.get("resourceNames") or (), f"{path}.{name}[{index}].resourceNames")
            yield from check_rule(rule, f"{path}.{name}[{index}]")
    if mutating:
        for rule in said.get("resourceRules") or ():
            for operation in rule.get("operations") or ():
                yield from common_rules.check_one_of(operation, f"{path}.resourceRules.operations", *_MUTABLE)


def check_conditions(conditions: Sequence[Object], path: str, declared: DeclaredVariables) -> Iterator[Cause]:
    """The violations in match conditions (``validateMatchConditions``)."""
    if len(conditions) > _MOST_CONDITIONS:
        why = f"Too many: {len(conditions)}: must have at most {_MOST_CONDITIONS} items"
        yield Cause("FieldValueTooMany", why, path)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at, name, expression = f"{path}[{index}]", condition.get("name", ""), condition.get("expression", "").strip()
        if not expression:
            yield field_errors.value_required(f"{at}.expression")
        elif wrong := declared.check(expression, ("bool",))[0]:
            yield field_errors.invalid(f"{at}.expression", expression, wrong)
        if not name:
            yield field_errors.value_required(f"{at}.name")
        elif wrong := name_rules.qualified_name_error(name):
            yield field_errors.invalid(f"{at}.name", name, wrong)
        if name and name in seen:
            yield field_errors.duplicate(f"{at}.name", name)
        seen.add(name)


def _check_names(said: Sequence[str], path: str) -> Iterator[Cause]:
    for index, name in enumerate(said):
        if wrong := name_rules.path_segment_error(name):
            yield field_errors.invalid(f"{path}[{index}]", name, wrong)
        if name in said[:index]:
            yield field_errors.duplicate(f"{path}[{index}]", name)
