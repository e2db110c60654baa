"""JSON merge patches (RFC 7386) as ``evanphx/json-patch`` applies them (pure)."""

from collections.abc import Mapping
from typing import Any

from lastcall.lab.apiserver.patches.kept import kept_items, kept_map
from lastcall.lab.apiserver.request import Object

_DEEP = frozenset((dict, list))


def merged(document: Object, patch: Mapping[str, Any]) -> Object:
    """The document after the patch, in which null removes a field. What stays as it was is shared by both."""
    result = dict(document)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
            continue
        before = result.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            result[name] = merged(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            result[name] = kept_items(before, value, without_nulls)
        elif before.__class__ is not value.__class__ or before != value:
            result[name] = without_nulls(value)
    return kept_map(document, result)


def without_nulls(value: Any) -> Any:
    """The value without fields that are null; nulls in lists stay."""
    if isinstance(value, dict):
        return {
            name: without_nulls(one) if one.__class__ in _DEEP else one
            for name, one in value.items()
            if one is not None
        }
    if isinstance(value, list):
        return [without_nulls(one) if one.__class__ in _DEEP else one for one in value]
    return value
