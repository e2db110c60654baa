"""What is done to an object before its schema judges it: unknown fields go, defaults come (pure).

``k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning`` and ``defaulting``.
"""

import copy
from collections.abc import Iterator
from typing import Any

from lastcall_lab.apiserver.values.request import Object

_META = frozenset(("apiVersion", "kind", "metadata"))


def prune(obj: Object, schema: Object) -> list[str]:
    """Takes the unknown fields out of a resource, and returns their paths."""
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
    """Whether the schema knows the field, and its schema."""
    properties = (schema or {}).get("properties") or {}
    if name in properties:
        return True, properties[name]
    others = (schema or {}).get("additionalProperties")
    if others is None or others is False:
        return False, None
    return True, others if isinstance(others, dict) else None


def _item_schema(schema: Object | None, items: Object | None) -> Object | None:
    """The schema of items: in a list that keeps unknown fields, they keep them too."""
    if items is None and schema and schema.get("x-kubernetes-preserve-unknown-fields"):
        return schema
    return items


def drop_nulls(value: Any, schema: Object | None, *, untyped: bool = False) -> None:
    """Takes out nulls where there can be none and no default comes in their place.

    ``untyped``: only where the schema says no type.
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
    """Fills in the defaults of what is not there."""
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
    """The paths of what ``prune`` would take out; nothing is changed."""
    return list(_prune(copy.deepcopy(value), schema, ""))
