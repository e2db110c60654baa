"""Validation of webhook rules: operations, groups, versions, resources (``validateRuleWithOperations``), pure."""

from collections.abc import Iterator, Sequence

from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


def check_rule(rule: Object, path: str) -> Iterator[Cause]:
    """The violations in one rule of a webhook."""
    yield from _list(rule.get("operations"), f"{path}.operations", "operations")
    for index, operation in enumerate(rule.get("operations") or ()):
        yield from common_rules.check_one_of(operation, f"{path}.operations[{index}]", *_OPERATIONS)
    yield from _list(rule.get("apiGroups"), f"{path}.apiGroups", "API groups")
    yield from _list(rule.get("apiVersions"), f"{path}.apiVersions", "API versions")
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            yield field_errors.value_required(f"{path}.apiVersions[{index}]")
    yield from _check_resources(rule.get("resources") or [], f"{path}.resources")
    yield from common_rules.check_one_of(rule.get("scope"), f"{path}.scope", "*", "Cluster", "Namespaced")


def _list(values: Sequence[str] | None, path: str, what: str) -> Iterator[Cause]:
    if not values:
        yield field_errors.value_required(path)
    elif len(values) > 1 and "*" in values:
        yield field_errors.invalid(path, values, f"if '*' is present, must not specify other {what}")


def _check_resources(resources: Sequence[str], path: str) -> Iterator[Cause]:
    if not resources:
        yield field_errors.value_required(path)
    whole: set[str] = set()
    anywhere: set[str] = set()
    for index, said in enumerate(resources):
        if not said:
            yield field_errors.value_required(f"{path}[{index}]")
            continue
        resource, slash, part = said.partition("/")
        if not slash:
            continue
        if resource in whole:
            why = f"if '{resource}/*' is present, must not specify {said}"
            yield field_errors.invalid(f"{path}[{index}]", said, why)
        if part in anywhere:
            why = f"if '*/{part}' is present, must not specify {said}"
            yield field_errors.invalid(f"{path}[{index}]", said, why)
        if part == "*":
            whole.add(resource)
        if resource == "*":
            anywhere.add(part)
    if len(resources) > 1 and "*/*" in resources:
        yield field_errors.invalid(path, resources, "if '*/*' is present, must not specify other resources")
    plain = [one for one in resources if one and "/" not in one]
    if "*" in plain and plain[-1] != "*":
        why = "if '*' is present, must not specify other resources without subresources"
        yield field_errors.invalid(path, resources, why)
