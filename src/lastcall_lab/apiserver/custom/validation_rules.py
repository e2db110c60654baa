"""Evaluates ``x-kubernetes-validations``: CEL rules about parts of an object and their transitions (pure)."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from lastcall_lab.apiserver.cel import evaluator
from lastcall_lab.apiserver.custom.value_validation import ABSENT, NOWHERE, correlate_items, is_same
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_LONGEST = 5 * 1024
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_OLD_SELF = re.compile(r"\boldSelf\b")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_META = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}},
}


def rule_violations(
    value: Any, schema: Object, path: str = "", *, old: Any = ABSENT, root: bool = True
) -> Iterator[Cause]:
    """The violations of the schema's rules, including nested ones.

    ``old`` is the value before an update; transition rules need one. Unchanged parts are not evaluated again. ``root``:
    the value is a whole resource, whose metadata rules can read.
    """
    if value is None:
        return
    rules = schema.get("x-kubernetes-validations") or ()
    if rules:
        yield from _node(rules, value, with_resource_fields(schema) if root else schema, path, old)
    for part in schema.get("allOf") or ():
        yield from rule_violations(value, {**part, "type": schema.get("type")}, path, old=old, root=False)
    if isinstance(value, dict):
        yield from _map(value, schema, path, old)
    elif isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        for index, item, before in correlate_items(value, schema, old):
            yield from rule_violations(item, items, f"{path}[{index}]", old=before, root=_is_embedded(items))


def uses_old_self(rule: str) -> bool:
    """Whether it is a transition rule."""
    return bool(_OLD_SELF.search(rule))


def with_resource_fields(schema: Object) -> Object:
    """The schema with the fields that rules at a resource's root can also read."""
    return {**schema, "properties": {**(schema.get("properties") or {}), **_META}}


def escape_name(name: str) -> str:
    """The escaped field name for expressions; empty if expressions cannot name the field."""
    if name in _RESERVED:
        return f"__{name}__"
    for character, escape in _ESCAPES:
        name = name.replace(character, escape)
    return name if _IDENTIFIER.fullmatch(name) else ""


def _is_embedded(schema: Object) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def _map(value: Object, schema: Object, path: str, old: Any) -> Iterator[Cause]:
    before: Mapping[str, Any] = old if isinstance(old, dict) else {}
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, inner in value.items():
        was = before.get(name, ABSENT)
        if name in properties:
            at = f"{path}.{name}" if path else name
            yield from rule_violations(inner, properties[name], at, old=was, root=_is_embedded(properties[name]))
        elif isinstance(others, dict):
            yield from rule_violations(inner, others, f"{path}[{name}]", old=was, root=_is_embedded(others))


def _node(rules: list[Object], value: Any, schema: Object, path: str, old: Any) -> Iterator[Cause]:
    variables = {"self": cel_value(value, schema)}
    if old is not ABSENT and old is not None:
        variables["oldSelf"] = cel_value(old, schema)
    unchanged = old is not ABSENT and is_same(value, old)
    for rule in rules:
        change, seen = uses_old_self(rule["rule"]), variables
        if change and rule.get("optionalOldSelf"):
            seen = {
                **variables,
                "oldSelf": evaluator.optional_value(variables.get("oldSelf"), there="oldSelf" in variables),
            }
        if (change and "oldSelf" not in seen) or (unchanged and not change):
            continue
        if cause := _judge(rule, value, schema, path or NOWHERE, seen):
            yield cause


def _judge(rule: Object, value: Any, schema: Object, path: str, variables: Object) -> Cause | None:
    kind, words = schema.get("type", ""), (rule.get("message") or rule["rule"]).strip()
    try:
        holds = evaluator.evaluate(rule["rule"], variables)
    except evaluator.CelError as error:
        if str(error).startswith("no such overload"):
            signature = "call arguments did not match a supported operator, function or macro signature for rule"
            return field_errors.invalid(path, kind, f"'{error}': {signature}: {words}")
        if str(error) == evaluator.TOO_MUCH:
            why = "no further validation rules will be run due to call cost exceeds limit for rule"
            return field_errors.invalid(path, kind, f"'{error}': {why}: {words}")
        return field_errors.invalid(path, kind, f"{error} evaluating rule: {words}")
    if holds is True:
        return None
    why = _message(rule, variables) or (rule.get("message") or "").strip() or f"failed rule: {words}"
    return _cause(rule, value, kind, path, why)


def _message(rule: Object, variables: Object) -> str:
    """The message of ``messageExpression``; empty if it is unusable."""
    expression = rule.get("messageExpression")
    if not expression:
        return ""
    try:
        found = evaluator.evaluate(expression, variables)
    except evaluator.CelError:
        return ""
    text = found.strip() if isinstance(found, str) else ""
    return "" if "\n" in text or len(text) > _LONGEST else text


def _cause(rule: Object, value: Any, kind: str, path: str, why: str) -> Cause:
    if rule.get("fieldPath"):
        inner = re.sub(r"\['((?:[^'\\]|\\.)*)'\]", r".\1", rule["fieldPath"]).removeprefix(".")
        path = inner if path == NOWHERE else f"{path}.{inner}"
    reason = rule.get("reason", "FieldValueInvalid")
    if reason == "FieldValueForbidden":
        return field_errors.forbidden(path, why)
    if reason == "FieldValueRequired":
        return field_errors.value_required(path, why)
    if reason == "FieldValueDuplicate":
        return field_errors.duplicate(path, value)
    if kind in ("object", "array"):
        return Cause("FieldValueInvalid", f"Invalid value: {why}", path)
    return field_errors.invalid(path, value, why)


# -- values as expressions see them ------------------------------------------------------------------------------------


def cel_value(value: Any, schema: Object | None) -> Any:
    """The typed value; of an object only the fields that the schema names, under escaped names."""
    schema = schema or {}
    if isinstance(value, dict):
        return _cel_object(value, schema)
    if isinstance(value, list):
        return [cel_value(item, schema.get("items")) for item in value]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _cel_text(value, schema.get("format", "")) if isinstance(value, str) and schema.get("format") else value


def _cel_object(value: Object, schema: Object) -> Object:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    if properties:
        named = {name: escape_name(name) for name in value if name in properties}
        return {alias: cel_value(value[name], properties[name]) for name, alias in named.items() if alias}
    return {name: cel_value(inner, others if isinstance(others, dict) else None) for name, inner in value.items()}


def _cel_text(value: str, form: str) -> Any:
    try:
        if form in ("date-time", "datetime", "date"):
            moment = datetime.fromisoformat(value.upper())
            return moment if moment.tzinfo else datetime.fromisoformat(f"{moment.isoformat()}+00:00")
    except ValueError:
        return value
    if form == "duration":
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(value))
        return timedelta(seconds=-seconds if value.startswith("-") else seconds)
    return value.encode() if form == "byte" else value
