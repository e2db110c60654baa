"""Merges an applied configuration into an object, and removes fields from one (pure).

The rules are those of ``sigs.k8s.io/structured-merge-diff/typed``. Objects are not changed in place; results share
parts with them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.patches.field_sets import FieldSet, field_key, is_member
from lastcall_lab.apiserver.patches.shapes import DuplicateItems, OwnershipShape

_NOTHING: Any = object()


def lay_over(live: Any, config: Any, shape: OwnershipShape) -> Any:
    """Merges both; the configuration takes precedence."""
    if live is _NOTHING:
        return config
    if config is _NOTHING:
        return live
    if shape.whole or (not live and not config):
        return config
    if shape.map and isinstance(live, dict | None) and isinstance(config, dict | None):
        return _maps(live or {}, config or {}, shape) or _NOTHING
    if shape.keys is not None and isinstance(live, list | None) and isinstance(config, list | None):
        return _lists(live or [], config or [], shape) or _NOTHING
    return config


def _maps(live: Mapping[str, Any], config: Mapping[str, Any], shape: OwnershipShape) -> dict[str, Any]:
    merged = {}
    for name in (*live, *(name for name in config if name not in live)):
        below = shape.fields.get(name, shape.element)
        value = lay_over(live.get(name, _NOTHING), config.get(name, _NOTHING), below)
        if value is not _NOTHING:
            merged[name] = value
    return merged


def _lists(live: Sequence[Any], config: Sequence[Any], shape: OwnershipShape) -> list[Any]:
    """Items of the configuration keep its order; the others stay between their former neighbours."""
    ours, theirs = shape.index(config), shape.index(live)
    merged: list[Any] = []
    done: set[str] = set()
    shared = [key for key in ours if key in theirs]
    left, right = [(shape.key(one), one) for one in live], list(ours)
    at, to, next_shared = 0, 0, 0

    def take(key: str) -> None:
        nonlocal next_shared
        done.add(key)
        before = theirs.get(key, _NOTHING)
        before = None if isinstance(before, DuplicateItems) else before
        merged.append(lay_over(before, ours[key], shape.element))
        if next_shared < len(shared) and shared[next_shared] == key:
            next_shared += 1

    while at < len(left) or to < len(right):
        if at < len(left) and to < len(right):
            key = left[at][0]
            if key == right[to]:
                take(key)
                at, to = at + 1, to + 1
                continue
            if key in ours and next_shared < len(shared) and shared[next_shared] != key:
                at += 1
                continue
        if at < len(left):
            key, one = left[at]
            if key not in ours:
                merged.append(one)
                at += 1
                continue
            if key in done:
                at += 1
        if to < len(right):
            take(right[to])
            to += 1
    return [one for one in merged if one is not _NOTHING]


def take_out_fields(value: Any, fields: FieldSet, shape: OwnershipShape) -> Any:
    """The value without the fields of the set; None if nothing is left."""
    if isinstance(value, dict) and shape.map:
        return None if shape.whole or not value else _map_without(value, fields, shape) or None
    if isinstance(value, list) and shape.list:
        return None if shape.whole or not value else _list_without(value, fields, shape) or None
    return None if isinstance(value, dict | list) else value


def _map_without(value: Mapping[str, Any], fields: FieldSet, shape: OwnershipShape) -> dict[str, Any]:
    result = {}
    for name, one in value.items():
        node = fields.get(field_key(name))
        if node is None:
            result[name] = one
        elif not is_member(node):
            result[name] = take_out_fields(one, node, shape.fields.get(name, shape.element))
    return result


def _list_without(value: Sequence[Any], fields: FieldSet, shape: OwnershipShape) -> list[Any]:
    result = []
    for one in value:
        node = fields.get(shape.key(one))
        if node is None:
            result.append(one)
        elif node and not is_member(node):
            result.append(take_out_fields(one, node, shape.element))
        elif not is_member(node):
            result.append(one)
    return result


def include_structs(fields: FieldSet, shape: OwnershipShape) -> FieldSet:
    """Extends the set by every field of a struct that has a member below it."""
    result = {}
    for key, below in fields.items():
        if not below or key == ".":
            result[key] = below
            continue
        name = key[2:]
        if key.startswith("f:"):
            inner = include_structs(below, shape.fields.get(name, shape.element))
            result[key] = {".": {}, **inner} if name in shape.fields else inner
        else:
            result[key] = include_structs(below, shape.element if shape.list else shape)
    return result
