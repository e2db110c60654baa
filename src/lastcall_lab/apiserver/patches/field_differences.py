"""The fields of an object, and the differences between two versions of it (pure).

The rules are those of ``sigs.k8s.io/structured-merge-diff/typed``: atomic lists and maps are one value, an empty map or
list is a value of its own, and a new map, list or item is a member of the set in addition to its content.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lastcall_lab.apiserver.patches.field_sets import LEAF, SELF, FieldSet, field_key, sorted_keys
from lastcall_lab.apiserver.patches.shapes import DuplicateItems, OwnershipShape

_Pair = tuple[FieldSet | None, FieldSet | None]
_SAME: _Pair = (None, None)
_SCALARS = frozenset((str, int, bool, float))


class FieldDifference(NamedTuple):
    """``changed`` has new or changed fields, in order; ``removed`` has the deleted ones."""

    changed: FieldSet
    removed: FieldSet


def compare_objects(old: Mapping[str, Any], new: Mapping[str, Any], shape: OwnershipShape) -> FieldDifference:
    """The difference between two versions of an object."""
    changed, removed = _maps(old, new, shape)
    return FieldDifference(changed or {}, removed or {})


def _values(old: Any, new: Any, shape: OwnershipShape) -> _Pair:
    """The difference of two present, unequal values."""
    if shape.whole or (not old and not new):
        return LEAF, None
    if shape.map and isinstance(old, dict | None) and isinstance(new, dict | None):
        return _maps(old or {}, new or {}, shape)
    if shape.keys is not None and isinstance(old, list | None) and isinstance(new, list | None):
        return _lists(old, new, shape)
    return LEAF, _everything(old, shape) if isinstance(old, dict) else None


def _maps(old: Mapping[str, Any], new: Mapping[str, Any], shape: OwnershipShape) -> _Pair:
    changed, removed = {}, {}
    fields, element = shape.fields, shape.element
    for name, value in new.items():
        if name not in old:
            changed[field_key(name)] = _everything(value, fields.get(name, element))
        elif (before := old[name]) != value:
            more, less = _values(before, value, fields.get(name, element))
            if more is not None:
                changed[field_key(name)] = more
            if less is not None:
                removed[field_key(name)] = less
    for name in old:
        if name not in new:
            removed[field_key(name)] = _everything(old[name], fields.get(name, element))
    return _in_order(changed), removed or None


def _in_order(changed: FieldSet) -> FieldSet | None:
    if not changed:
        return None
    return {key: changed[key] for key in sorted_keys(changed)} if len(changed) > 1 else changed


def _lists(old: list[Any] | None, new: list[Any] | None, shape: OwnershipShape) -> _Pair:
    before, after = shape.index(old), shape.index(new)
    changed, removed = {}, {}
    for key, value in after.items():
        more, less = _items(before[key], value, shape.element) if key in before else (_item(value, shape), None)
        if more is not None:
            changed[key] = more
        if less is not None:
            removed[key] = less
    for key, value in before.items():
        if key not in after:
            removed[key] = _item(value, shape)
    return _in_order(changed), removed or None


def _items(before: Any, after: Any, shape: OwnershipShape) -> _Pair:
    """The difference of one list item; items with the same key count as one value."""
    if before == after:
        return _SAME
    if isinstance(before, DuplicateItems) and isinstance(after, DuplicateItems):
        return LEAF, None
    if isinstance(before, DuplicateItems):
        return _everything(after, shape), LEAF
    if isinstance(after, DuplicateItems):
        return LEAF, _everything(before, shape)
    return _values(before, after, shape)


def _item(value: Any, shape: OwnershipShape) -> FieldSet:
    return LEAF if isinstance(value, DuplicateItems) else _everything(value, shape.element)


def _everything(value: Any, shape: OwnershipShape) -> FieldSet:
    """The set of a value that only one side has: itself and its content."""
    if shape.whole or not value:
        return LEAF
    if isinstance(value, dict) and shape.map:
        fields, element = shape.fields, shape.element
        below = {
            f"f:{name}": LEAF
            if (one := value[name]).__class__ in _SCALARS
            else _everything(one, fields.get(name, element))
            for name in sorted(value)
        }
    elif isinstance(value, list) and shape.keys is not None:
        items = shape.index(value)
        below = {key: _item(items[key], shape) for key in sorted_keys(items)}
    else:
        return LEAF
    return {SELF: LEAF, **below} if below else LEAF


# -- applied configurations ----------------------------------------------------------------------------------------------


def fields_in(config: Mapping[str, Any], shape: OwnershipShape) -> FieldSet:
    """The fields that a configuration sets. Structs and lists are represented by their content."""
    return _owned_map(config, shape)


def _owned_fields(value: Any, shape: OwnershipShape) -> tuple[FieldSet, bool]:
    """The fields below a value, and whether the value itself is a member."""
    if shape.whole:
        return {}, True
    if isinstance(value, dict) and shape.map:
        return _owned_map(value, shape), not value
    if isinstance(value, list) and shape.keys is not None:
        return _owned_list(value, shape), False
    return {}, value is None or shape.free


def _owned_map(value: Mapping[str, Any], shape: OwnershipShape) -> FieldSet:
    result = {}
    fields, element = shape.fields, shape.element
    for name, one in value.items():
        declared = fields.get(name)
        below, member = _owned_fields(one, declared or element)
        if member or declared is None:
            result[field_key(name)] = {SELF: LEAF, **below} if below else LEAF
        elif below:
            result[field_key(name)] = below
    return result


def _owned_list(value: list[Any], shape: OwnershipShape) -> FieldSet:
    result = {}
    for key, one in shape.index(value).items():
        below = {} if isinstance(one, DuplicateItems) else _owned_fields(one, shape.element)[0]
        result[key] = {SELF: LEAF, **below} if below else LEAF
    return result
