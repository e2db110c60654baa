"""Validation of a definition's schema (``apis/apiextensions/validation``), pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lastcall_lab.apiserver.cel import evaluator
from lastcall_lab.apiserver.custom import list_types, structural_schema, validation_rules, value_validation
from lastcall_lab.apiserver.custom.field_paths import InvalidPath, schema_at
from lastcall_lab.apiserver.schema import pruning
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_META = ("metadata", "kind", "apiVersion")
_CHAIN = re.compile(r"(?<![\w.])(?:self|oldSelf)((?:\.[A-Za-z_]\w*)+)(\s*\()?")
_RULES = "x-kubernetes-validations"
_AT_ROOT = (
    *("Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum"),
    *("MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items"),
    *("Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations"),
)


class _SchemaPosition(NamedTuple):
    """A position in the schema. ``uncorrelated``: the path of the first list or map without correlated old items."""

    root: bool = True
    no_default: str = ""
    inside_meta: bool = False
    uncorrelated: str = ""


def schema_violations(schema: Object, path: str, *, status: bool) -> list[Cause]:
    """All violations in a resource's schema; ``status``: the status is a subresource."""
    causes = list(_root(schema, path, status=status))
    found = structural_schema.structural_violations(schema, path) or list(_defaults(schema, path))
    spelled = list(_spelling_violations(schema, path, _SchemaPosition()))
    causes += [*found, *spelled]
    return causes or list(_expressions(schema, validation_rules.with_resource_fields(schema), path, _SchemaPosition()))


def _root(schema: Object, path: str, *, status: bool) -> Iterator[Cause]:
    if status:
        if schema.get("type") and schema["type"] != "object":
            why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            yield field_errors.invalid(f"{path}.type", schema["type"], why)
        elif any(_go_name(name) not in _AT_ROOT for name, value in schema.items() if value not in (None, [], {}, "")):
            why = f"only [{' '.join(_AT_ROOT)}] fields are allowed at the root of the schema"
            yield field_errors.invalid(path, schema, f"{why} if the status subresource is enabled")
    if schema.get("nullable"):
        yield field_errors.forbidden(f"{path}.nullable", "nullable cannot be true at the root")


def _go_name(name: str) -> str:
    if name.startswith("x-kubernetes-"):
        return "X" + "".join(part.capitalize() for part in name.removeprefix("x-kubernetes-").split("-"))
    return name[:1].upper() + name[1:]


# -- defaults ----------------------------------------------------------------------------------------------------------


def _defaults(schema: Object, path: str) -> Iterator[Cause]:
    given = schema.get("default")
    if given is not None:
        yield from _default(given, schema, f"{path}.default")
    if isinstance(items := schema.get("items"), dict):
        yield from _defaults(items, f"{path}.items")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _defaults(inner, f"{path}.properties[{name}]")


def _default(given: Any, schema: Object, path: str) -> Iterator[Cause]:
    holder, known = {"default": given}, {"properties": {"default": schema}}
    unknown = pruning.unknown_fields(holder, known)
    if unknown:
        yield field_errors.invalid(path, given, "must not have unknown fields")
    causes = [*value_validation.value_violations(given, schema, ""), *list_types.list_violations(given, schema, "")]
    causes = causes or list(validation_rules.rule_violations(given, schema, "", root=False))
    for cause in causes:
        inner = cause.field.removeprefix(value_validation.NOWHERE)
        yield cause._replace(field=f"{path}.{inner}" if inner and not inner.startswith("[") else f"{path}{inner}")


# -- structure ---------------------------------------------------------------------------------------------------------


def _spelling_violations(schema: Object, path: str, place: _SchemaPosition) -> Iterator[Cause]:
    yield from _support_violations(schema, path, place)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield field_errors.forbidden(f"{path}.uniqueItems", why)
    others = schema.get("additionalProperties")
    if others is not None and others is not True and schema.get("properties"):
        why = "additionalProperties and properties are mutual exclusive"
        yield field_errors.forbidden(f"{path}.additionalProperties", why)
    for at, inner, there in _below(schema, path, place):
        yield from _spelling_violations(inner, at, there)
    yield from _extensions(schema, path)
    for index, rule in enumerate(schema.get(_RULES) or ()):
        yield from _rule(rule, schema, f"{path}.{_RULES}[{index}]")


def _support_violations(schema: Object, path: str, place: _SchemaPosition) -> Iterator[Cause]:
    kind = schema.get("type")
    if kind and kind not in _TYPES:
        yield field_errors.not_supported(f"{path}.type", kind, _TYPES)
    if schema.get("default") is not None and place.no_default:
        yield field_errors.forbidden(f"{path}.default", f"must not be set {place.no_default}")
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield field_errors.forbidden(f"{path}.{name}", f"{name} is not supported")
    if kind == "null":
        yield field_errors.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield field_errors.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if place.inside_meta and schema.get("x-kubernetes-embedded-resource"):
        yield field_errors.forbidden(
            f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta"
        )


def _below(schema: Object, path: str, place: _SchemaPosition) -> Iterator[tuple[str, Object, _SchemaPosition]]:
    """The nested schemas with their paths and positions."""
    inner = place._replace(root=False)
    if isinstance(others := schema.get("additionalProperties"), dict):
        why = "inside additionalProperties applying to object metadata" if place.inside_meta else place.no_default
        yield f"{path}.additionalProperties", others, inner._replace(no_default=why)
    for name, one in (schema.get("properties") or {}).items():
        there = inner
        if name in _META and (place.root or schema.get("x-kubernetes-embedded-resource")):
            why = f"in top-level {name}" if place.root else place.no_default
            there = inner._replace(inside_meta=True, no_default=why)
        yield f"{path}.properties[{name}]", one, there
    for name in ("allOf", "oneOf", "anyOf"):
        yield from ((f"{path}.{name}[{index}]", one, inner) for index, one in enumerate(schema.get(name) or ()))
    if isinstance(schema.get("not"), dict):
        yield f"{path}.not", schema["not"], inner
    if isinstance(items := schema.get("items"), dict):
        known = schema.get("x-kubernetes-list-type") == "map"
        yield f"{path}.items", items, inner if known else inner._replace(uncorrelated=place.uncorrelated or path)


def _extensions(schema: Object, path: str) -> Iterator[Cause]:
    kind, items = schema.get("type", ""), schema.get("items")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield field_errors.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    for name, wanted, allowed in (
        ("x-kubernetes-map-type", "object", ("atomic", "granular")),
        ("x-kubernetes-list-type", "array", ("atomic", "set", "map")),
    ):
        if (said := schema.get(name)) is None:
            continue
        if kind != wanted:
            why = f"must be {wanted} if {name} is specified"
            yield (
                field_errors.invalid(f"{path}.type", kind, why)
                if kind
                else field_errors.value_required(f"{path}.type", why)
            )
        if said not in allowed:
            yield field_errors.not_supported(f"{path}.{name}", said, allowed)
    yield from _list_map(schema, path)
    if schema.get("x-kubernetes-list-type") in ("set", "map") and isinstance(items, dict) and items.get("nullable"):
        why = f"cannot be nullable when x-kubernetes-list-type is {schema['x-kubernetes-list-type']}"
        yield field_errors.forbidden(f"{path}.items.nullable", why)
    if schema.get("x-kubernetes-list-type") == "set" and isinstance(items, dict):
        yield from _atomic(items, path)


def _atomic(items: Object, path: str) -> Iterator[Cause]:
    why = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
        yield field_errors.invalid(f"{path}.items.x-kubernetes-list-type", items["x-kubernetes-list-type"], why)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield field_errors.invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-list-type"), why)


def _list_map(schema: Object, path: str) -> Iterator[Cause]:
    keys, kind, items = (
        schema.get("x-kubernetes-list-map-keys"),
        schema.get("x-kubernetes-list-type"),
        schema.get("items"),
    )
    at = f"{path}.x-kubernetes-list-map-keys"
    if keys and kind != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        name = f"{path}.x-kubernetes-list-type"
        yield field_errors.value_required(name, why) if kind is None else field_errors.invalid(name, kind, why)
    if kind != "map":
        return
    if not keys:
        yield field_errors.value_required(at, "must not be empty if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        yield field_errors.value_required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    elif items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield field_errors.invalid(f"{path}.items.type", items.get("type", ""), why)
    else:
        yield from _keys(keys or (), items, path)


def _keys(keys: Sequence[str], items: Object, path: str) -> Iterator[Cause]:
    properties, at = items.get("properties") or {}, f"{path}.x-kubernetes-list-map-keys"
    for index, key in enumerate(keys):
        if key not in properties:
            yield field_errors.invalid(at, list(keys), "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield field_errors.invalid(f"{path}.items.properties[{key}].type", items["type"], why)
        if key in keys[:index]:
            yield field_errors.invalid(at, list(keys), "must not contain duplicate entries")
    for key in keys:
        inner, belongs = properties.get(key), "this property is in x-kubernetes-list-map-keys, so it"
        if inner and key not in (items.get("required") or ()) and inner.get("default") is None:
            why = f"{belongs} must have a default or be a required property"
            yield field_errors.value_required(f"{path}.items.properties[{key}].default", why)
        if inner and inner.get("nullable"):
            yield field_errors.forbidden(f"{path}.items.properties[{key}].nullable", f"{belongs} cannot be nullable")


# -- rules -------------------------------------------------------------------------------------------------------------


def _rule(rule: Object, schema: Object, path: str) -> Iterator[Cause]:
    said, message = rule.get("rule", "").strip(), rule.get("message", "")
    if not said:
        yield field_errors.value_required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield field_errors.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip() or "\r" in message.strip():
        yield field_errors.invalid(f"{path}.message", message, "must not contain line breaks")
    elif "\n" in said and not message.strip():
        yield field_errors.value_required(f"{path}.message", "message must be specified if rule contains line breaks")
    if rule.get("messageExpression") and not rule["messageExpression"].strip():
        yield field_errors.value_required(
            f"{path}.messageExpression", "messageExpression must be non-empty if specified"
        )
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield field_errors.not_supported(f"{path}.reason", rule["reason"], _REASONS)
    where = rule.get("fieldPath", "")
    if where and not where.strip():
        yield field_errors.invalid(f"{path}.fieldPath", where, "must be non-empty if specified")
    if "\n" in where:
        yield field_errors.invalid(f"{path}.fieldPath", where, "must not contain line breaks")
    if where:
        try:
            schema_at(where, schema)
        except InvalidPath:
            yield field_errors.invalid(f"{path}.fieldPath", where, "must be a valid path")


def _expressions(schema: Object, seen: Object, path: str, place: _SchemaPosition) -> Iterator[Cause]:
    """The expressions that do not compile; ``seen`` is the schema as rules see it."""
    for at, inner, there in _below(schema, path, place):
        embedded = inner.get("x-kubernetes-embedded-resource")
        yield from _expressions(inner, validation_rules.with_resource_fields(inner) if embedded else inner, at, there)
    for index, rule in enumerate(schema.get(_RULES) or ()):
        at = f"{path}.{_RULES}[{index}]"
        if why := _compile_error(rule["rule"], seen):
            yield field_errors.invalid(f"{at}.rule", _go_rule(rule), why)
        if rule.get("messageExpression") and (why := _compile_error(rule["messageExpression"], seen)):
            yield field_errors.invalid(f"{at}.messageExpression", _go_rule(rule), f"messageExpression {why}")
        if not validation_rules.uses_old_self(rule["rule"]):
            if rule.get("optionalOldSelf") is not None:
                why = "may not be set if oldSelf is not used in rule"
                yield field_errors.invalid(f"{at}.optionalOldSelf", rule["optionalOldSelf"], why)
        elif place.uncorrelated:
            why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.uncorrelated}"
            yield field_errors.invalid(f"{at}.rule", rule["rule"], why)


def _go_rule(rule: Object) -> Object:
    """The rule as Go prints its struct."""
    names = ("Rule", "Message", "MessageExpression")
    shown = {name: rule.get(name[0].lower() + name[1:], "") for name in names}
    return {
        **shown,
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }


def _compile_error(expression: str, schema: Object) -> str:
    """Why an expression does not compile. Field types are known only for fields named through self."""
    if why := evaluator.compile_error(expression, declared=("self", "oldSelf")):
        return why
    for found in _CHAIN.finditer(expression):
        names = found[1].split(".")[1:]
        node: Object = schema
        for name in names[:-1] if found[2] else names:
            if node.get("type") != "object" or node.get("additionalProperties"):
                break  # a map, or a value without known fields
            known = {validation_rules.escape_name(one): inner for one, inner in (node.get("properties") or {}).items()}
            if name not in known:
                return evaluator.undefined_field_error(expression, name)
            node = known[name]
    return ""
