"""Validates values against schemas, with the messages of ``kube-openapi/pkg/validation/validate`` (pure).

Violations in unchanged parts are ignored: a definition may become stricter than existing objects (ratcheting,
KEP-4008).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.custom import string_formats
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.regular_expressions import compile_pattern
from lastcall_lab.apiserver.values.request import Object

ABSENT: Any = object()
"""The old value of a new part."""

NOWHERE = "<nil>"
"""The path of an error that Kubernetes reports without one."""


def value_violations(value: Any, schema: Object, path: str = "", *, old: Any = ABSENT) -> Iterator[Cause]:
    """The violations in a value; ``path`` is empty at an object's root, ``old`` is the value before an update."""
    if old is not ABSENT and is_same(value, old):
        return
    if value is None:
        yield from _type(value, schema, path)
        yield from _enum(value, schema, path)
        return
    yield from _type(value, schema, path)
    yield from _junctors(value, schema, path, old)
    if isinstance(value, str):
        yield from _text(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, schema, path)
    elif isinstance(value, list):
        yield from _list(value, schema, path, old)
    yield from _enum(value, schema, path)
    if isinstance(value, dict):
        yield from _object(value, schema, path, old)


def is_same(left: Any, right: Any) -> bool:
    """JSON equality, in which true differs from 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return bool(left == right)


def correlate_items(items: Sequence[Any], schema: Object, old: Any) -> Iterator[tuple[int, Any, Any]]:
    """The items of a list with their indexes and old values; only lists of type map can correlate."""
    keys = schema.get("x-kubernetes-list-map-keys") if schema.get("x-kubernetes-list-type") == "map" else None
    before = {}
    if keys and isinstance(old, list):
        before = {_identity(one, keys): one for one in old if isinstance(one, dict)}
    for index, item in enumerate(items):
        known = keys and isinstance(item, dict)
        yield index, item, before.get(_identity(item, keys), ABSENT) if known and keys else ABSENT


def _identity(item: Object, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(repr(item.get(key)) for key in keys)


# -- types -------------------------------------------------------------------------------------------------------------


def json_type(value: Any) -> str:
    """The JSON type of a value."""
    if isinstance(value, bool):
        return "boolean"
    known = ((str, "string"), (int, "integer"), (float, "number"), (list, "array"), (dict, "object"))
    return next((name for one, name in known if isinstance(value, one)), "null")


def _types(schema: Object) -> Sequence[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _type(value: Any, schema: Object, path: str) -> Iterator[Cause]:
    wanted, found = _types(schema), json_type(value)
    if not wanted or found in wanted or (value is None and schema.get("nullable")):
        return
    whole = found == "number" and float(value).is_integer() and "integer" in wanted
    if whole or (found == "integer" and "number" in wanted):
        return
    why = f'{path} in body must be of type {",".join(wanted)}: "{found}"'
    yield field_errors.type_invalid(_shown_path(path), found, why)


def _shown_path(path: str) -> str:
    return path.removeprefix(".") or NOWHERE


# -- allOf, anyOf, oneOf, not ------------------------------------------------------------------------------------------


def _junctors(value: Any, schema: Object, path: str, old: Any) -> Iterator[Cause]:
    if options := schema.get("anyOf"):
        yield from _any_of(value, options, path)
    if options := schema.get("oneOf"):
        yield from _one_of(value, options, path)
    if parts := schema.get("allOf"):
        results = [list(value_violations(value, part, path, old=old)) for part in parts]
        yield from (cause for result in results for cause in result)
        if any(results):
            none = "" if not all(results) else ". None validated"
            yield _loose(f'"{path}" must validate all the schemas (allOf){none}')
    if (no := schema.get("not")) is not None and not any(value_violations(value, no, path)):
        yield _loose(f'"{path}" must not validate the schema (not)')


def _any_of(value: Any, options: Sequence[Object], path: str) -> Iterator[Cause]:
    results = [list(value_violations(value, option, path)) for option in options]
    if all(results):
        yield _loose(f'"{path}" must validate at least one schema (anyOf)')
        yield from min(results, key=len)


def _one_of(value: Any, options: Sequence[Object], path: str) -> Iterator[Cause]:
    results = [list(value_violations(value, option, path)) for option in options]
    valid = sum(not result for result in results)
    if valid != 1:
        found = f"Found {valid} valid alternatives" if valid else "Found none valid"
        yield _loose(f'"{path}" must validate one and only one schema (oneOf). {found}')
        if not valid:
            yield from min(results, key=len)


def _loose(why: str) -> Cause:
    return field_errors.invalid(NOWHERE, "", why)


# -- each kind of value ------------------------------------------------------------------------------------------------


def _text(value: str, schema: Object, path: str) -> Iterator[Cause]:
    longest, shortest, said = schema.get("maxLength"), schema.get("minLength"), schema.get("format", "")
    if longest is not None and len(value) > longest:
        yield field_errors.too_long(_shown_path(path), longest)
    elif shortest is not None and len(value) < shortest:
        yield field_errors.invalid(_shown_path(path), value, f"{path} in body should be at least {shortest} chars long")
    elif schema.get("pattern") and not compile_pattern(schema["pattern"]).search(value):
        yield field_errors.invalid(_shown_path(path), value, f"{path} in body should match '{schema['pattern']}'")
    if said and string_formats.is_known(said, schema.get("type", "")) and not string_formats.has_format(value, said):
        yield field_errors.type_invalid(
            _shown_path(path), value, f"{path} in body must be of type {said}: {field_errors.format_value(value)}"
        )


_BOUNDS: Sequence[tuple[str, str, Callable[[float, float], bool], Callable[[float, float], bool], str]] = (
    ("minimum", "exclusiveMinimum", lambda a, b: a >= b, lambda a, b: a > b, "greater than"),
    ("maximum", "exclusiveMaximum", lambda a, b: a <= b, lambda a, b: a < b, "less than"),
)


def _number(value: float, schema: Object, path: str) -> Iterator[Cause]:
    if schema.get("type") == "integer" and schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
        yield _loose(f"Checked value must be of type integer with format int32 in {path}")
    factor = schema.get("multipleOf")
    if factor and not float(value / factor).is_integer():
        yield field_errors.invalid(
            _shown_path(path), value, f"{path} in body should be a multiple of {_go_float(factor)}"
        )
    for name, exclusive, within, strictly, words in _BOUNDS:
        bound, strict = schema.get(name), schema.get(exclusive, False)
        if bound is not None and not (strictly if strict else within)(value, bound):
            equal = "" if strict else " or equal to"
            yield field_errors.invalid(
                _shown_path(path), value, f"{path} in body should be {words}{equal} {_go_float(bound)}"
            )


def _go_float(number: float) -> str:
    """The text of Go's ``%v`` for a float."""
    return f"{number:g}" if isinstance(number, float) else str(number)


def _list(value: list[Any], schema: Object, path: str, old: Any) -> Iterator[Cause]:
    if isinstance(items := schema.get("items"), dict):
        for index, item, before in correlate_items(value, schema, old):
            yield from value_violations(item, items, f"{path}[{index}]", old=before)
    fewest, most = schema.get("minItems"), schema.get("maxItems")
    if fewest is not None and len(value) < fewest:
        yield field_errors.invalid(_shown_path(path), len(value), f"{path} in body should have at least {fewest} items")
    if most is not None and len(value) > most:
        yield field_errors.too_many(_shown_path(path), len(value), most)


def _object(value: Object, schema: Object, path: str, old: Any) -> Iterator[Cause]:
    fewest, most = schema.get("minProperties"), schema.get("maxProperties")
    if fewest is not None and len(value) < fewest:
        yield field_errors.invalid(
            _shown_path(path), len(value), f"{path} in body should have at least {fewest} properties"
        )
    if most is not None and len(value) > most:
        yield field_errors.too_many(_shown_path(path), len(value), most)
    before: Mapping[str, Any] = old if isinstance(old, dict) else {}
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, inner in value.items():
        if name in properties:
            yield from value_violations(
                inner, properties[name], f"{path}.{name}" if path else name, old=before.get(name, ABSENT)
            )
        elif others is False:
            yield field_errors.invalid(_shown_path(path), "", f"{path}.{name} in body is a forbidden property")
        elif isinstance(others, dict):
            yield from value_violations(inner, others, f"{path}.{name}", old=before.get(name, ABSENT))
    yield from _missing_fields(value, schema.get("required") or (), path)


def _missing_fields(value: Object, names: Iterable[str], path: str) -> Iterator[Cause]:
    for name in names:
        if name not in value:
            yield field_errors.value_required(_shown_path(f"{path}.{name}"))


def _enum(value: Any, schema: Object, path: str) -> Iterator[Cause]:
    allowed = schema.get("enum")
    if allowed is None or any(is_same(value, one) for one in allowed):
        return
    yield field_errors.not_supported(
        _shown_path(path), value, [one if isinstance(one, str) else field_errors.format_value(one) for one in allowed]
    )
