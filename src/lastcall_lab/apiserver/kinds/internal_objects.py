"""Objects in Kubernetes' internal form, as its messages show them (pure).

The internal types resemble those of the API, with other field names and with unset fields included.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from lastcall_lab.apiserver.schema.types import SchemaNode, shared_table
from lastcall_lab.apiserver.values.request import Object

_ACRONYMS = frozenset("api aws csi dns fc fs gce grpc http ip iscsi nfs os rbd se tcp tty uid".split())  # noqa: SIM905
_NAMES = {"cephfs": "CephFS", "storageos": "StorageOS"}
_TAGGED = "v1.LabelSelector"
"""An API type that Kubernetes also uses internally."""


@cache
def internal_fields(kind: str, *path: str) -> Mapping[str, SchemaNode]:
    """The internal fields of a part of a ``v1`` kind, by API name."""
    node = shared_table().find("", "v1", kind)
    for name in path:
        node = node.fields[name] if node else None
    if node is None:
        raise LookupError(f"the table of types has no {kind} {'.'.join(path)}")
    return node.fields


def to_internal(obj: Object, fields: Mapping[str, SchemaNode], names: Iterable[str]) -> Object:
    """The given fields of an object, in that order, under their Go names."""
    return {_name(name): _value(obj.get(name), fields[name]) for name in names}


def unified_diff(old: Object, new: Object) -> str:
    """The unified diff of two objects, with three lines of context.

    It helps users find the immutable field that they changed.
    """
    lines = difflib.unified_diff(_lines(old), _lines(new), n=3, lineterm="\n")
    return "".join([*lines][2:])


def _lines(obj: Object) -> list[str]:
    text = json.dumps(obj, indent=1, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.splitlines(keepends=True)


def _value(value: Any, node: SchemaNode) -> Any:
    if value is None and (node.kind in ("list", "map") or node.write in ("set", "null")):
        return None
    if node.kind == "struct" and node.go_type != _TAGGED:
        return to_internal(value or {}, node.fields, node.fields)
    if value is None:
        return node.zero_value()
    if node.element and node.kind == "list":
        return [_value(one, node.element) for one in value]
    return dict(sorted(value.items())) if node.kind == "map" else value


def _name(name: str) -> str:
    """The Go name of a field."""
    first = re.match("[a-z]*", name)
    word = first[0] if first else ""
    return _NAMES.get(name) or (word.upper() if word in _ACRONYMS else word.capitalize()) + name[len(word) :]
