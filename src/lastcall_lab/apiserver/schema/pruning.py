"""Prunes unknown fields and applies defaults before a custom resource is validated (pure).

``k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning`` and ``defaulting``.
"""

import copy
from collections.abc import Iterator
from typing import Any

from lastcall_lab.apiserver.values.request import Object

_META = frozenset(("apiVersion", "kind", "metadata"))


def prune(obj: Object, schema: Object) -> list[str]:
    """Removes the unknown fields of a resource, and returns their paths."""
    return sorted(_prune(obj, {**schema, "x-kubernetes-embedded-resource": True}, ""))


def _prune(value: Any, schema: Object | None, path: str) -> Iterator[str]:
    if isinstance(value, list):
        items = (schema or {}).get("items")
        for index, item in enumerate(value):
            yield from _prune(item, _item_schema(schema, items), f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    keeps = bool(schema and schema.get("x-kubernetes-preserve-unknown-fields"))
    for name in list(value):
        if schema and schema.get("x-kubernetes-embedded-resource") and name in _META:
            continue
        at = f"{path}.{name}" if path else name
        known, inner = _field(schema, name)
        if known:
            yield from _prune(value[name], inner, at)
        elif not keeps:
            del value[name]
            yield at


def _field(schema: Object | None, name: str) -> tuple[bool, Object | None]:
    """Whether the schema has the field, and the field's schema."""
    properties = (schema or {}).get("properties") or {}
    if name in properties:
        return True, properties[name]
    others = (schema or {}).get("additionalProperties")
    if others is None or others is False:
        return False, None
    return True, others if isinstance(others, dict) else None


def _item_schema(schema: Object | None, items: Object | None) -> Object | None:
    """The schema of items; a list that preserves unknown fields passes that on to its items."""
    if items is None and schema and schema.get("x-kubernetes-preserve-unknown-fields"):
        return schema
    return items


def drop_nulls(value: Any, schema: Object | None, *, untyped: bool = False) -> None:
    """Removes nulls of fields that are not nullable, so that defaults can apply.

    ``untyped``: only where the schema has no type.
    """
    if isinstance(value, list):
        for item in value:
            drop_nulls(item, (schema or {}).get("items"), untyped=untyped)
    if not isinstance(value, dict):
        return
    for name in list(value):
        inner = _field(schema, name)[1] if schema else None
        kept = not inner or inner.get("nullable") or (untyped and _is_typed(inner))
        if value[name] is None and not kept and inner and inner.get("default") is None:
            del value[name]
        else:
            drop_nulls(value[name], inner, untyped=untyped)


def _is_typed(schema: Object) -> bool:
    return bool(schema.get("type") or schema.get("x-kubernetes-int-or-string"))


def apply_defaults(value: Any, schema: Object | None) -> None:
    """Sets the defaults of missing fields."""
    if schema is None:
        return
    if isinstance(value, list):
        for item in value:
            apply_defaults(item, schema.get("items"))
    if not isinstance(value, dict):
        return
    for name, inner in (schema.get("properties") or {}).items():
        given = inner.get("default")
        missing = name not in value or (value[name] is None and not inner.get("nullable"))
        if given is not None and missing:
            value[name] = copy.deepcopy(given)
    for name in value:
        apply_defaults(value[name], _field(schema, name)[1])


def unknown_fields(value: Any, schema: Object) -> list[str]:
    """The paths that ``prune`` would remove, without changing the object."""
    return list(_prune(copy.deepcopy(value), schema, ""))
