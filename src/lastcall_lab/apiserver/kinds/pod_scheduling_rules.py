"""Validation of a pod's scheduling constraints (``pkg/apis/core/validation``), pure."""

from collections.abc import Iterator

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_tolerations(tolerations: list[Object], path: str) -> Iterator[Cause]:
    """The tolerations of a pod."""
    for index, toleration in enumerate(tolerations):
        place = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        effect = toleration.get("effect", "")
        if key and (wrong := name_rules.qualified_name_error(key)):
            yield field_errors.invalid(f"{place}.key", key, wrong)
        if not key and operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield field_errors.invalid(f"{place}.operator", operator, why)
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield field_errors.invalid(f"{place}.effect", effect, why)
        yield from _value(operator, toleration.get("value", ""), f"{place}.operator")
        if effect and effect not in _EFFECTS:
            yield field_errors.not_supported(f"{place}.effect", effect, _EFFECTS)


def _value(operator: str, value: str, path: str) -> Iterator[Cause]:
    if operator in ("Equal", ""):
        if wrong := name_rules.label_value_error(value):
            yield field_errors.invalid(path, value, wrong)
    elif operator == "Exists":
        if value:
            yield field_errors.invalid(path, value, "value must be empty when `operator` is 'Exists'")
    else:
        yield field_errors.not_supported(path, operator, ["Equal", "Exists"])


def validate_gates(gates: list[Object], path: str) -> Iterator[Cause]:
    """``schedulingGates``."""
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        if wrong := name_rules.qualified_name_error(name):
            yield field_errors.invalid(f"{path}[{index}]", name, wrong)
        if name in seen:
            yield field_errors.duplicate(f"{path}[{index}]", name)
        seen.add(name)


def validate_affinity(affinity: Object, path: str) -> Iterator[Cause]:
    """Node affinity, pod affinity and anti-affinity."""
    if nodes := affinity.get("nodeAffinity"):
        yield from _node_affinity(nodes, f"{path}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        for index, term in enumerate((affinity.get(kind) or {}).get(_REQUIRED) or ()):
            yield from _pod_term(term, f"{path}.{kind}.{_REQUIRED}[{index}]")
        for index, term in enumerate((affinity.get(kind) or {}).get(_PREFERRED) or ()):
            place = f"{path}.{kind}.{_PREFERRED}[{index}]"
            yield from _weight(term, place)
            yield from _pod_term(term.get("podAffinityTerm") or {}, f"{place}.podAffinityTerm")


def _node_affinity(affinity: Object, path: str) -> Iterator[Cause]:
    if (required := affinity.get(_REQUIRED)) is not None:
        yield from validate_node_selector(required, f"{path}.{_REQUIRED}")
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(term, place)
        yield from _node_term(term.get("preference") or {}, f"{place}.preference", check_values=False)


def validate_node_selector(selector: Object, path: str) -> Iterator[Cause]:
    """``nodeSelectorTerms``, including those of volumes."""
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        yield field_errors.value_required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from _node_term(term, f"{path}.nodeSelectorTerms[{index}]", check_values=True)


def _weight(term: Object, path: str) -> Iterator[Cause]:
    if not 1 <= term.get("weight", 0) <= 100:
        yield field_errors.invalid(f"{path}.weight", term.get("weight", 0), "must be in the range 1-100")


def _node_term(term: Object, path: str, *, check_values: bool) -> Iterator[Cause]:
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        place, key = f"{path}.matchExpressions[{index}]", requirement.get("key", "")
        yield from _operator(requirement, place)
        if wrong := name_rules.qualified_name_error(key):
            yield field_errors.invalid(f"{place}.key", key, wrong)
        for number, value in enumerate((check_values and requirement.get("values")) or ()):
            if wrong := name_rules.label_value_error(value):
                yield field_errors.invalid(f"{place}.values[{number}]", value, wrong)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        yield from _match_field(requirement, f"{path}.matchFields[{index}]")


def _operator(requirement: Object, path: str) -> Iterator[Cause]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    where = f"{path}.values"
    if operator in ("In", "NotIn"):
        if not values:
            yield field_errors.value_required(where, "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield field_errors.forbidden(where, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield field_errors.value_required(where, "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield field_errors.invalid(f"{path}.operator", operator, "not a valid selector operator")


def _match_field(requirement: Object, path: str) -> Iterator[Cause]:
    operator, key, values = requirement.get("operator", ""), requirement.get("key", ""), requirement.get("values") or []
    if operator not in ("In", "NotIn"):
        yield field_errors.invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield field_errors.value_required(f"{path}.values", why)
    if key != "metadata.name":
        yield field_errors.invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        if wrong := name_rules.subdomain_error(value):
            yield field_errors.invalid(f"{path}.values[{index}]", value, wrong)


def _pod_term(term: Object, path: str) -> Iterator[Cause]:
    yield from validate_selector(term.get("labelSelector"), f"{path}.labelSelector")
    yield from validate_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for namespace in term.get("namespaces") or ():
        if wrong := name_rules.dns_label_error(namespace):
            yield field_errors.invalid(f"{path}.namespace", namespace, wrong)
    key = term.get("topologyKey", "")
    if not key:
        yield field_errors.value_required(f"{path}.topologyKey", "can not be empty")
    if wrong := name_rules.qualified_name_error(key):
        yield field_errors.invalid(f"{path}.topologyKey", key, wrong)


def validate_spreading(constraints: list[Object], path: str) -> Iterator[Cause]:
    """``topologySpreadConstraints``."""
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(constraints):
        place, skew, key = f"{path}[{index}]", one.get("maxSkew", 0), one.get("topologyKey", "")
        when = one.get("whenUnsatisfiable", "")
        if skew <= 0:
            yield field_errors.invalid(f"{place}.maxSkew", skew, "must be greater than zero")
        if not key:
            yield field_errors.value_required(f"{place}.topologyKey", "can not be empty")
        elif wrong := name_rules.qualified_name_error(key):
            yield field_errors.invalid(f"{place}.topologyKey", key, wrong)
        if when not in ("DoNotSchedule", "ScheduleAnyway"):
            yield field_errors.not_supported(f"{place}.whenUnsatisfiable", when, ["DoNotSchedule", "ScheduleAnyway"])
        if (key, when) in seen:
            yield field_errors.duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {when}}}")
        seen.add((key, when))
        yield from _domains(one.get("minDomains"), when, f"{place}.minDomains")
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if one.get(name) not in (None, "Honor", "Ignore"):
                yield field_errors.not_supported(f"{place}.{name}", one[name], ["Honor", "Ignore"])
        yield from validate_selector(one.get("labelSelector"), f"{place}.labelSelector")


def _domains(number: int | None, when: str, path: str) -> Iterator[Cause]:
    if number is None:
        return
    if number <= 0:
        yield field_errors.invalid(path, number, "must be greater than zero")
    if when != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
        yield field_errors.invalid(path, number, why)
