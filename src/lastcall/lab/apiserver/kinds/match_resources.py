"""``matchConstraints``, ``matchResources`` and ``matchConditions`` of admission (``pkg/apis/admissionregistration``), pure."""

from collections.abc import Iterator, Sequence

from lastcall.lab.apiserver import fields, names
from lastcall.lab.apiserver.cel_admission import Declared
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.kinds.label_selectors import validate_selector
from lastcall.lab.apiserver.kinds.webhook_rules import check_rule
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause

_MOST_CONDITIONS = 64
_MUTABLE = ("*", "CONNECT", "CREATE", "UPDATE")
"""Operations in which a policy can change something."""


def default_resources(said: Object | None) -> None:
    """Fills in what a client has left out (``SetDefaults_MatchResources``)."""
    if said is None:
        return
    rules.fill(said, matchPolicy="Equivalent")
    for name in ("namespaceSelector", "objectSelector"):
        if said.get(name) is None:
            said[name] = {}
    for rule in (*(said.get("resourceRules") or ()), *(said.get("excludeResourceRules") or ())):
        rules.fill(rule, scope="*")


def check_resources(said: Object, path: str, *, mutating: bool) -> Iterator[Cause]:
    """The rules that they violate (``validateMatchResources``)."""
    yield from rules.one_of(said["matchPolicy"], f"{path}.matchPolicy", "Equivalent", "Exact")
    yield from validate_selector(said["namespaceSelector"], f"{path}.namespaceSelector")
    yield from validate_selector(said["objectSelector"], f"{path}.objectSelector")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(said.get(name) or ()):
            yield from _check_names(rule.get("resourceNames") or (), f"{path}.{name}[{index}].resourceNames")
            yield from check_rule(rule, f"{path}.{name}[{index}]")
    if mutating:
        for rule in said.get("resourceRules") or ():
            for operation in rule.get("operations") or ():
                yield from rules.one_of(operation, f"{path}.resourceRules.operations", *_MUTABLE)


def check_conditions(conditions: Sequence[Object], path: str, declared: Declared) -> Iterator[Cause]:
    """The rules that match conditions violate (``validateMatchConditions``)."""
    if len(conditions) > _MOST_CONDITIONS:
        why = f"Too many: {len(conditions)}: must have at most {_MOST_CONDITIONS} items"
        yield Cause("FieldValueTooMany", why, path)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at, name, expression = f"{path}[{index}]", condition.get("name", ""), condition.get("expression", "").strip()
        if not expression:
            yield fields.required(f"{at}.expression")
        elif wrong := declared.check(expression, ("bool",))[0]:
            yield fields.invalid(f"{at}.expression", expression, wrong)
        if not name:
            yield fields.required(f"{at}.name")
        elif wrong := names.qualified(name):
            yield fields.invalid(f"{at}.name", name, wrong)
        if name and name in seen:
            yield fields.duplicate(f"{at}.name", name)
        seen.add(name)


def _check_names(said: Sequence[str], path: str) -> Iterator[Cause]:
    for index, name in enumerate(said):
        if wrong := names.path_segment(name):
            yield fields.invalid(f"{path}[{index}]", name, wrong)
        if name in said[:index]:
            yield fields.duplicate(f"{path}[{index}]", name)
