"""Sets of fields in the format of ``metadata.managedFields`` (FieldsV1), and their operations (pure).

A set is a tree of dicts. A key is ``f:`` and a field name, ``k:`` and the key fields of a list item, or ``v:`` and an
item that is its own key. A node is a member if its dict is empty or contains ``.``; otherwise it is only on the path to
members. See ``sigs.k8s.io/structured-merge-diff/fieldpath``.

Functions never change their arguments, and results share parts with them: never change a set in place.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

FieldSet = dict[str, Any]

SELF = "."
LEAF: FieldSet = {}
"""A node without children."""

_ENCODER = msgspec.json.Encoder()


def field_key(name: str) -> str:
    """The key of a field."""
    return f"f:{name}"


def item_key(keys: Mapping[str, Any]) -> str:
    """The key of a list item, from its key fields."""
    return "k:" + _json({name: keys[name] for name in sorted(keys)} if len(keys) > 1 else keys)


@lru_cache(maxsize=4096)  # cached: containers, ports and conditions have the same few keys
def named_item_key(key: str, name: str) -> str:
    """The key of a list item with one key field of text."""
    return item_key({key: name})


def value_key(one: Any) -> str:
    """The key of an item that is its own key."""
    return "v:" + _json(one)


def _json(one: Any) -> str:
    """As Go encodes it, so that equal keys have equal text."""
    text = _ENCODER.encode(one).decode()
    if "&" in text or "<" in text or ">" in text:
        return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return text


def is_member(node: FieldSet | None) -> bool:
    """Whether this node itself is a member of the set."""
    return node is not None and (not node or SELF in node)


def _node(children: FieldSet, member: bool) -> FieldSet | None:
    """A node; None if it is empty."""
    if member:
        return {SELF: LEAF, **children} if children else LEAF
    return children or None


def _children(node: FieldSet) -> FieldSet:
    return {key: below for key, below in node.items() if key != SELF} if SELF in node else node


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """The members of either set."""
    if not one or one is other:
        return other
    if not other:
        return one
    result = dict(one)
    for key, there in other.items():
        here = result.get(key)
        if here is None or (not here and not there):
            result[key] = there
        elif here is not there and key != SELF:
            member = is_member(here) or is_member(there)
            result[key] = _node(union(_children(here), _children(there)), member) or LEAF
    return result


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The members of ``one`` only."""
    if one.keys().isdisjoint(other):
        return one
    result = {}
    for key, here in one.items():
        there = other.get(key)
        if there is None:
            result[key] = here
        elif key != SELF:
            left = _node(difference(_children(here), _children(there)), is_member(here) and not is_member(there))
            if left is not None:
                result[key] = left
    return result


def exclude_subtrees(one: FieldSet, other: FieldSet) -> FieldSet:
    """The members of ``one`` that are neither in ``other`` nor below a member of ``other``."""
    result = {}
    for key, here in one.items():
        there = other.get(key)
        if there is None:
            result[key] = here
        elif (
            not is_member(there)
            and (left := _node(exclude_subtrees(_children(here), there), is_member(here))) is not None
        ):
            result[key] = left
    return result


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """The members of both sets."""
    result = {}
    for key, here in one.items():
        there = other.get(key)
        if there is None or key == SELF:
            continue
        both = _node(intersection(_children(here), _children(there)), is_member(here) and is_member(there))
        if both is not None:
            result[key] = both
    return result


def member_paths(one: FieldSet, prefix: str = "") -> Iterator[str]:
    """The paths of all members for messages: one level first, then those below."""
    inner = sorted((key for key in one if key != SELF), key=_order)
    for key in inner:
        if is_member(one[key]):
            yield prefix + path_step(key)
    for key in inner:
        yield from member_paths(one[key], prefix + path_step(key))


def sort_fields(one: FieldSet) -> FieldSet:
    """The set in the order in which Kubernetes writes it."""
    return {key: sort_fields(below) if (below := one[key]) else LEAF for key in sorted_keys(one)}


def sorted_keys(one: FieldSet) -> list[str]:
    """The keys of one level in that order."""
    keys = sorted(one)
    # Sorting the text also sorts the kinds of keys like Kubernetes; only the content of keys can differ.
    if len(keys) > 1 and keys[-1][0] in "kv":
        keys.sort(key=_order)
    return keys


_RANKS = {".": 0, "f": 1, "k": 2, "v": 3, "i": 4}
_TYPES = {float: 0, int: 0, str: 1, bool: 2}


@lru_cache(maxsize=4096)
def _order(key: str) -> tuple[Any, ...]:
    """By kind of key, then by its content; numbers compare as numbers."""
    kind, content = key[0], key[2:]
    if kind == "k":
        return 2, tuple((name, *_comparable(one)) for name, one in sorted(json.loads(content).items()))
    if kind == "v":
        return 3, *_comparable(json.loads(content))
    return _RANKS.get(kind, 5), content


def _comparable(one: Any) -> tuple[int, Any]:
    return _TYPES.get(type(one), 3), one if type(one) in _TYPES else json.dumps(one)


def path_step(key: str) -> str:
    """One step of a path: ``.name``, ``[name="c"]``, ``[="x"]``."""
    kind, content = key[0], key[2:]
    if kind == "f":
        return f".{content}"
    if kind == "k":
        keys = sorted(json.loads(content).items())
        return f"[{','.join(f'{name}={json.dumps(one, ensure_ascii=False)}' for name, one in keys)}]"
    return f"[={json.dumps(json.loads(content), ensure_ascii=False)}]" if kind == "v" else f"[{content}]"
