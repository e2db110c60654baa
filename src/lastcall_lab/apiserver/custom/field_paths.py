"""Field paths such as ``.spec.node`` or ``.spec.labels['a']``, resolved by a schema (pure)."""

import re

from lastcall_lab.apiserver.values.request import Object

_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\['(?P<key>(?:[^'\\]|\\.)*)'\]")


class InvalidPath(ValueError):
    """The text is the reason in Kubernetes' words."""


def schema_at(path: str, schema: Object, *, keys: bool = True) -> Object:
    """The schema of the field at the path; ``keys`` allows brackets. InvalidPath if it does not exist."""
    at = 0
    while at < len(path):
        if path[at] == "[" and not keys:
            raise InvalidPath("array notation is not allowed")
        step = _STEP.match(path, at)
        if not step:
            raise InvalidPath(_unexpected_character(path, at))
        schema = _inner(schema, step["name"] if step["name"] is not None else step["key"])
        at = step.end()
    return schema


def _inner(schema: Object, name: str) -> Object:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    found = properties.get(name) if properties else others
    if not isinstance(found, dict):
        raise InvalidPath("does not refer to a valid field")
    return found


def _unexpected_character(path: str, at: int) -> str:
    token = re.split(r"[.\[\]]", path[at:])[0]
    if path[at] in ".[":
        return "unexpected end of JSON path"
    return f"expected [ or . but got: {token or path[at]}"
