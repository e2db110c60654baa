"""JSON merge patches (RFC 7386) as ``evanphx/json-patch`` applies them (pure)."""

from collections.abc import Mapping
from typing import Any

from lastcall_lab.apiserver.patches.structural_sharing import share_items, share_map
from lastcall_lab.apiserver.values.request import Object

_DEEP = frozenset((dict, list))


def apply_merge_patch(document: Object, patch: Mapping[str, Any]) -> Object:
    """The document after the patch, in which null removes a field. Shares unchanged parts with the original."""
    result = dict(document)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
            continue
        before = result.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            result[name] = apply_merge_patch(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            result[name] = share_items(before, value, drop_null_fields)
        elif before.__class__ is not value.__class__ or before != value:
            result[name] = drop_null_fields(value)
    return share_map(document, result)


def drop_null_fields(value: Any) -> Any:
    """The value without fields that are null; nulls in lists stay."""
    if isinstance(value, dict):
        return {
            name: drop_null_fields(one) if one.__class__ in _DEEP else one
            for name, one in value.items()
            if one is not None
        }
    if isinstance(value, list):
        return [drop_null_fields(one) if one.__class__ in _DEEP else one for one in value]
    return value
