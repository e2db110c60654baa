"""Errors in an applied configuration, in the words of ``structured-merge-diff`` (pure)."""

from typing import Any

from lastcall_lab.apiserver.patches import field_sets
from lastcall_lab.apiserver.patches.shapes import MissingItemKey, OwnershipShape
from lastcall_lab.apiserver.values import go_format


def configuration_faults(value: Any, shape: OwnershipShape, path: str = "") -> list[str]:
    """The errors of a configuration: ``.spec.nope: field not declared in schema``."""
    if value is None or shape.free:
        return []
    if shape.map:
        return _map_faults(value, shape, path)
    if shape.list:
        return _list_faults(value, shape, path)
    wrong = _scalar_fault(value, shape.scalar)
    return [f"{path}: {wrong}"] if wrong else []


def _map_faults(value: Any, shape: OwnershipShape, path: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{path}: expected map, got &{{{go_format.go_value(value)}}}"]
    found: list[str] = []
    for name, one in value.items():
        if shape.struct and not shape.open and name not in shape.fields:
            found.append(f"{path}.{name}: field not declared in schema")
            break
        found += configuration_faults(one, shape.fields.get(name, shape.element), f"{path}.{name}")
    return found


def _list_faults(value: Any, shape: OwnershipShape, path: str) -> list[str]:
    if not isinstance(value, list):
        return [f"{path}: expected list, got &{{{go_format.go_value(value)}}}"]
    found: list[str] = []
    seen: set[str] = set()
    for index, one in enumerate(value):
        shown = f"[{index}]"
        if shape.keys is not None:
            try:
                key = shape.key(one)
            except MissingItemKey as error:
                return [*found, f"{path}: element {index}: {error}"]
            shown = field_sets.path_step(key)
            if key in seen:
                found.append(f"{path}: duplicate entries for key {shown}")
            seen.add(key)
        found += configuration_faults(one, shape.element, path + shown)
    return found


def _scalar_fault(value: Any, scalar: str) -> str:
    if scalar == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{go_format.go_syntax(value)}}}"
    if scalar == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got &{{{go_format.go_value(value)}}}"
    if scalar == "numeric" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return f"expected numeric (int or float), got {go_format.go_type_name(value)}"
    return ""
