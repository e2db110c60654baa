"""Structural schemas, a precondition of pruning (``apiserver/schema/validation.go``), pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.regular_expressions import MalformedPattern, compile_pattern
from lastcall_lab.apiserver.values.request import Object

_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_EMBEDDED, _PRESERVE = "x-kubernetes-embedded-resource", "x-kubernetes-preserve-unknown-fields"
_EITHER = "x-kubernetes-int-or-string"
_NESTED = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    _PRESERVE: "must be false to be structural",
    _EMBEDDED: "must be false to be structural",
    _EITHER: "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def structural_violations(schema: Object, path: str) -> list[Cause]:
    """Why the schema of a resource is not structural, in the order of the messages."""
    causes = [*_invariants(schema, path, _ROOT), *_complete(schema, schema, path)]
    return sorted(causes, key=lambda cause: f"{cause.field}: {cause.message}")


def _invariants(schema: Object, path: str, level: str) -> Iterator[Cause]:
    kind, items, others = schema.get("type", ""), schema.get("items"), schema.get("additionalProperties")
    if kind == "array" and items is None:
        yield field_errors.value_required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _invariants(items, f"{path}.items", _ITEM)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _invariants(inner, f"{path}.properties[{name}]", _FIELD)
    if others not in (None, False) and level == _ROOT:
        yield field_errors.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(others, dict):
        yield from _invariants(others, f"{path}.additionalProperties", _FIELD)
    yield from _extensions(schema, path)
    yield from _values(schema, path, of_either=True)
    yield from _types(schema, path, level)
    yield from _metadata(schema, path, level)


def _extensions(schema: Object, path: str) -> Iterator[Cause]:
    for name in (_PRESERVE, _EMBEDDED):
        if schema.get(_EITHER) and schema.get(name):
            yield field_errors.invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")


def _types(schema: Object, path: str, level: str) -> Iterator[Cause]:
    kind, at = schema.get("type", ""), f"{path}.type"
    if schema.get(_EMBEDDED) and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield field_errors.invalid(at, kind, why) if kind else field_errors.value_required(at, why)
    elif not kind and not schema.get(_EITHER) and not schema.get(_PRESERVE):
        yield field_errors.value_required(at, f"must not be empty {level}")
    if schema.get(_EMBEDDED) and schema.get("additionalProperties") is not None:
        why = "must not be used if x-kubernetes-embedded-resource is set"
        yield field_errors.forbidden(f"{path}.additionalProperties", why)
    if level == _ROOT and kind and kind != "object":
        yield field_errors.invalid(at, kind, "must be object at the root")
    if schema.get(_EMBEDDED) and not schema.get(_PRESERVE) and not schema.get("properties"):
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield field_errors.value_required(f"{path}.properties", why)


def _metadata(schema: Object, path: str, level: str) -> Iterator[Cause]:
    """A schema may restrict only the name in metadata."""
    properties = schema.get("properties") or {}
    if level != _ROOT and not schema.get(_EMBEDDED):
        return
    for name in ("kind", "apiVersion"):
        if name in properties and properties[name].get("type") != "string":
            yield field_errors.invalid(
                f"{path}.properties[{name}].type", properties[name].get("type", ""), "must be string"
            )
    if (said := properties.get("metadata")) is None:
        return
    at = f"{path}.properties[metadata]"
    if said.get("type") != "object":
        yield field_errors.invalid(f"{at}.type", said.get("type", ""), "must be object")
    named = set(said.get("properties") or ()) <= {"name", "generateName"}
    if level == _ROOT and (not named or set(said) - {"type", "properties", "default"}):
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield field_errors.forbidden(at, why)


def _values(schema: Object, path: str, *, of_either: bool = False) -> Iterator[Cause]:
    """allOf, anyOf, oneOf and not may only validate values; two forms of int-or-string may also name types."""
    either = of_either and bool(schema.get(_EITHER))
    for name in ("anyOf", "allOf", "oneOf"):
        for index, inner in enumerate(schema.get(name) or ()):
            allowed = either and name == "anyOf" and schema["anyOf"] == _INT_OR_STRING
            first = either and name == "allOf" and index == 0 and inner.get("anyOf") == _INT_OR_STRING
            if not allowed:
                yield from _nested_violations({**inner, "anyOf": []} if first else inner, f"{path}.{name}[{index}]")
    if schema.get("not") is not None:
        yield from _nested_violations(schema["not"], f"{path}.not")
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except MalformedPattern as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield field_errors.invalid(f"{path}.pattern", schema["pattern"], why)


def _nested_violations(schema: Object, path: str) -> Iterator[Cause]:
    yield from _values(schema, path)
    if isinstance(schema.get("items"), dict):
        yield from _nested_violations(schema["items"], f"{path}.items")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _nested_violations(inner, f"{path}.properties[{name}]")
    for name, why in _NESTED.items():
        if schema.get(name):
            yield field_errors.forbidden(f"{path}.{name}", why)
    if "metadata" in (schema.get("properties") or {}):
        yield field_errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _complete(schema: Object, whole: Object, path: str) -> Iterator[Cause]:
    """Fields within allOf, anyOf, oneOf and not must also be specified outside of them."""
    for at, inner in _junctors(schema, path):
        yield from _specification_violations(inner, whole, path, at)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _complete(inner, inner, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(deeper := schema.get(name), dict):
            yield from _complete(deeper, deeper, f"{path}.{name}")


def _junctors(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Object]]:
    for name in ("allOf", "anyOf", "oneOf"):
        yield from ((f"{path}.{name}[{index}]", inner) for index, inner in enumerate(schema.get(name) or ()))
    if schema.get("not") is not None:
        yield f"{path}.not", schema["not"]


def _specification_violations(value: Object, schema: Object | None, path: str, at: str) -> Iterator[Cause]:
    if schema is None:
        yield field_errors.value_required(path, f"because it is defined in {at}")
        return
    if isinstance(items := value.get("items"), dict):
        yield from _specification_violations(items, schema.get("items"), f"{path}.items", f"{at}.items")
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, inner in (value.get("properties") or {}).items():
        if name not in properties and others:
            continue
        yield from _specification_violations(
            inner, properties.get(name), f"{path}.properties[{name}]", f"{at}.properties[{name}]"
        )
    for deeper, inner in _junctors(value, at):
        yield from _specification_violations(inner, schema, path, deeper)
