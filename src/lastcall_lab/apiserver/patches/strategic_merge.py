"""Strategic merge patches: merge patches with list merging and directives (pure).

The rules and messages are those of ``apimachinery/pkg/util/strategicpatch``. The types define how lists and maps merge
(``x-kubernetes-patch-strategy``, ``x-kubernetes-patch-merge-key``); the patch contains the directives ``$patch``,
``$retainKeys``, ``$setElementOrder/...`` and ``$deleteFromPrimitiveList/...``.
"""

from collections.abc import Mapping
from typing import Any

from lastcall_lab.apiserver.patches import list_order
from lastcall_lab.apiserver.patches.list_order import InvalidPatch, MalformedDirective, missing_merge_key
from lastcall_lab.apiserver.patches.merge_patch import drop_null_fields
from lastcall_lab.apiserver.patches.structural_sharing import share_items, share_list, share_map
from lastcall_lab.apiserver.schema import SchemaNode
from lastcall_lab.apiserver.values import go_format
from lastcall_lab.apiserver.values.request import Object

__all__ = ["InvalidPatch", "MalformedDirective", "apply_strategic_patch"]

DIRECTIVE = "$patch"
RETAIN = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
ORDER = "$setElementOrder/"

_GONE: Any = object()
_SCALARS = frozenset((str, int, bool, float))


def apply_strategic_patch(original: Object, patch: Mapping[str, Any], node: SchemaNode | None) -> Object:
    """The object after the patch; shares unchanged parts. InvalidPatch or MalformedDirective if it is invalid."""
    if DIRECTIVE in patch:
        return _apply_directives(patch)
    result = dict(original)
    rest = _apply_retain_keys(result, patch)
    _merge_ordered(result, rest, node)
    for key, value in rest.items():
        if value.__class__ not in _SCALARS or key[:1] == "$":
            _merge_field(result, key, value, node)
        elif (before := result.get(key)).__class__ is not value.__class__ or before != value:
            result[key] = value
    return share_map(original, result)


def _apply_directives(patch: Mapping[str, Any]) -> Object:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != DIRECTIVE}
    if directive == "delete":
        return {}
    raise InvalidPatch(f"unknown patch type: {go_format.go_value(directive)} in map: {go_format.go_value(dict(patch))}")


def _apply_retain_keys(original: Object, patch: Mapping[str, Any]) -> Object:
    """Applies ``$retainKeys``: removes all other fields of the original; returns the patch without the directive."""
    rest = {key: value for key, value in patch.items() if key != RETAIN}
    if RETAIN not in patch:
        return rest
    keys = patch[RETAIN]
    unnamed = (key for key, value in rest.items() if value is not None and not key.startswith((DELETE_FROM, ORDER)))
    if not isinstance(keys, list):
        raise MalformedDirective("invalid patch format of retainKeys")
    names = {key for key in keys if isinstance(key, str)}
    if any(key not in names for key in unnamed):
        raise MalformedDirective("invalid patch format of retainKeys")
    for key in [key for key in original if key not in names]:
        del original[key]
    return rest


def _merge_ordered(original: Object, patch: Object, node: SchemaNode | None) -> None:
    """Merges the lists with an order in the patch, and removes them and their orders from the patch."""
    for directive in [key for key in patch if key.startswith(ORDER)]:
        order, key = patch.pop(directive), directive.removeprefix(ORDER)
        if not isinstance(order, list):
            raise InvalidPatch(f"expected a []interface {{}}, but received a {go_format.go_type_name(order)}")
        before, ours = _list(original.get(key)), _list(patch.get(key))
        field = _field(node, key)
        list_order.check_list_order(ours, order, _merge_key(field))
        if before is None and ours is None:
            continue
        seats = before or []
        if before is None:
            value = _without_directives(ours)
        elif ours is None:
            value = before
        else:
            value, seats = _merge_list(before, ours, field)
        original[key] = list_order.arrange_items(value, order, seats, _merge_key(field))
        patch.pop(key, None)


def _list(value: Any) -> list[Any] | None:
    if value is not None and not isinstance(value, list):
        raise InvalidPatch(f"expected a []interface {{}}, but received a {go_format.go_type_name(value)}")
    return value


def _merge_field(original: Object, key: str, value: Any, node: SchemaNode | None) -> None:
    deleted = key.startswith(DELETE_FROM)
    key = key.removeprefix(DELETE_FROM)
    if deleted and value is not None:
        _delete_from(original, key, value)
        return
    if value is None:
        if original.get(key) is not None:  # a stored null stays, because it would be written again
            del original[key]
        return
    before = original.get(key, _GONE)
    if isinstance(before, dict) and isinstance(value, dict):
        field = _field(node, key)
        replaced = field is not None and "replace" in field.patch_strategy
        original[key] = value if replaced else apply_strategic_patch(before, value, field)
    elif isinstance(before, list) and isinstance(value, list):
        original[key] = share_list(before, _merge_list(before, value, _field(node, key))[0])
    else:
        new = _without_directives(drop_null_fields(value) if type(before) is not type(value) else value)
        if new is _GONE:
            original.pop(key, None)
        else:
            original[key] = new


def _delete_from(original: Object, key: str, values: Any) -> None:
    """Removes values from a list of scalars."""
    before = original.get(key)
    if isinstance(before, list) and isinstance(values, list):
        deleted = list_order.ItemPositions(values)
        original[key] = [one for one in before if deleted.find(one) is None]


def _merge_list(before: list[Any], ours: list[Any], field: SchemaNode | None) -> tuple[list[Any], list[Any]]:
    """Merges two lists of a field, and returns the former order that their items count as having.

    Without the strategy ``merge`` the patch's list replaces the other. An added item counts as having been at the place
    of a deleted one: in Go both lists share their memory, and Kubernetes' tests pin that behaviour.
    """
    if field is None or "merge" not in field.patch_strategy:
        return share_items(before, ours, lambda one: one), before
    if not before and not ours:
        return before, before
    key = _merge_key(field)
    if list_order.common_item_type(before, ours) is not dict:
        known = set(before)  # scalars, as all items are
        together = [*before, *(one for one in ours if one not in known)]
        return list_order.arrange_items(together, ours, before, ""), before
    if not key:
        raise InvalidPatch(f"cannot merge lists without merge key for {field.element.go_type if field.element else ''}")
    left, others = _special_items(before, ours, key)
    together, places = list(left), list_order.ItemPositions()
    for index, one in enumerate(left):
        if key in one:
            places.add(one[key], index)
    for one in others:
        value = list_order.merge_value(one, key)
        place = places.find(value)
        if place is None:
            places.add(value, len(together))
            together.append(one)
        else:
            together[place] = apply_strategic_patch(together[place], one, field.element)
    return list_order.arrange_items(together, others, left, key), together[: len(before)]


def _special_items(before: list[Any], ours: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Applies the items with a directive; returns the resulting list and the other items of the patch."""
    others, replaced, deleted = [], False, list_order.ItemPositions()
    for one in ours:
        directive = one.get(DIRECTIVE, _GONE)
        if directive is _GONE:
            others.append(one)
        elif directive == "delete":
            if key not in one:
                raise missing_merge_key(one, key)
            deleted.add(one[key], 0)
        elif directive == "replace":
            replaced = True
        elif directive == "merge":
            raise InvalidPatch("merging lists cannot yet be specified in the patch")
        else:
            raise InvalidPatch(f"unknown patch type: {go_format.go_value(directive)} in map: {go_format.go_value(one)}")
    left = [item for item in before if key not in item or deleted.find(item[key]) is None]
    return (others, []) if replaced else (left, others)


def _field(node: SchemaNode | None, key: str) -> SchemaNode | None:
    """The type of a field. InvalidPatch if the field does not exist; None if the type is unknown."""
    if node is None or node.kind in ("any", "raw", "object"):
        return None
    field = node.at(key)
    if field is None:
        name = node.struct.name if node.struct else node.go_type
        raise InvalidPatch(f'unable to find api field in struct {name} for the json field "{key}"')
    return field


def _merge_key(field: SchemaNode | None) -> str:
    return field.merge_key if field else ""


def _without_directives(value: Any) -> Any:
    """Drops the directives of added parts, which have nothing to merge with."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return _GONE
        pairs = ((key, _without_directives(one)) for key, one in value.items())
        return {key: one for key, one in pairs if one is not _GONE}
    if isinstance(value, list):
        return [one for item in value if (one := _without_directives(item)) is not _GONE]
    return value
