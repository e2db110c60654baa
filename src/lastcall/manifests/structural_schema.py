"""Structural schemas of custom resources, generated from the structs that decode them (pure).

Types, bounds, enumerations, defaults and descriptions are those of the struct. ``SchemaExtras`` adds what only a schema
has: rules in CEL and list types.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from lastcall.model.base import Facts

Schema = dict[str, Any]

_APART = ("title", "default", "anyOf", "$ref")
_RULES = "x-kubernetes-validations"


class ValidationRule(NamedTuple):
    """A rule in CEL; ``self`` is the value of the schema that contains it."""

    expression: str
    message: str


class SchemaExtras(NamedTuple):
    """Additions to schemas, by the struct's name or by struct and field (``PolicySpec.fencers``)."""

    rules: Mapping[str, Sequence[ValidationRule]] = {}
    fields: Mapping[str, Schema] = {}
    defaults: bool = True
    """Whether the API server sets defaults for missing fields."""


def schema_of(struct: type[Facts], extras: SchemaExtras) -> Schema:
    """The structural schema of a struct, with the schemas of its fields inlined."""
    return _SchemaBuilder(msgspec.json.schema_components([struct], ref_template="#/{name}")[1], extras).of_struct(
        struct.__name__
    )


class _SchemaBuilder:
    def __init__(self, components: Mapping[str, Any], extras: SchemaExtras) -> None:
        self._components = components
        self._extras = extras

    def of_struct(self, name: str) -> Schema:
        found = self._components[name]
        properties = {
            field: self._field_schema(f"{name}.{field}", value) for field, value in found["properties"].items()
        }
        required = found.get("required") or []
        schema: Schema = {"type": "object", "description": _one_line(found.get("description", ""))}
        # The API server drops an empty default, so that the object would differ from what was applied.
        schema |= ({"properties": properties} if properties else {}) | ({"required": required} if required else {})
        return self._with_rules(name, schema)

    def _field_schema(self, place: str, found: Mapping[str, Any]) -> Schema:
        """A field's schema: its own description replaces its struct's; its rules and default are added."""
        schema = self._value_schema(found)
        if (
            self._extras.defaults
            and "default" in found
            and (default := _schema_default(found["default"], schema)) is not None
        ):
            schema["default"] = default
        return self._with_rules(place, schema | self._extras.fields.get(place, {}))

    def _value_schema(self, found: Mapping[str, Any]) -> Schema:
        kinds = [one for one in found.get("anyOf", ()) if one.get("type") != "null"]
        own = _with_integer_format({key: value for key, value in found.items() if key not in _APART})
        if len(kinds) == 1:
            return self._value_schema(kinds[0]) | own
        if kinds:
            return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": one["type"]} for one in kinds]} | own
        if "$ref" in found:
            return self._referenced_schema(found["$ref"].removeprefix("#/")) | own
        within = {key: self._value_schema(own[key]) for key in ("items", "additionalProperties") if key in own}
        return own | within | ({"items": _without_defaults(within["items"])} if "items" in within else {})

    def _referenced_schema(self, name: str) -> Schema:
        if "enum" in self._components[name]:
            return {"type": "string", "enum": self._components[name]["enum"]}
        return self.of_struct(name)

    def _with_rules(self, place: str, schema: Schema) -> Schema:
        """Appends the rules of the place to those of the schema."""
        rules = [{"rule": one.expression, "message": one.message} for one in self._extras.rules.get(place, ())]
        return schema | {_RULES: [*schema.get(_RULES, ()), *rules]} if rules else schema


def _with_integer_format(found: Schema) -> Schema:
    """Replaces the bounds of Go's integers by the format: -2**63 does not fit JSON's numbers."""
    for size in (32, 64):
        if (found.get("minimum"), found.get("maximum")) == (-(2 ** (size - 1)), 2 ** (size - 1) - 1):
            rest = {key: value for key, value in found.items() if key not in ("minimum", "maximum")}
            return rest | {"format": f"int{size}"}
    return found


def _schema_default(value: Any, schema: Schema) -> Any:
    """The default to set; None for none, and for objects, whose fields have their own defaults."""
    if isinstance(value, dict):
        return {} if any("default" in one for one in schema.get("properties", {}).values()) else None
    return None if value is None or value in ("", (), []) else value


def _without_defaults(schema: Schema) -> Schema:
    """The schema with its defaults only in descriptions, for items of lists.

    kubectl apply compares a list of a custom resource as a whole: each apply would remove the defaults that the API
    server has set in an item, and the server would set them again.
    """
    found = {key: value for key, value in schema.items() if key != "default"}
    if "default" in schema:
        value = schema["default"]
        if value != {}:
            said = str(value).lower() if isinstance(value, bool) else value
            found["description"] = f"{schema.get('description', '')} {said} by default.".strip()
    if "properties" in found:
        found["properties"] = {name: _without_defaults(one) for name, one in found["properties"].items()}
    return found


def _one_line(docstring: str) -> str:
    """A docstring as one line, with Markdown's code marks."""
    return " ".join(docstring.split()).replace("``", "`")
