"""Objects as Kubernetes has them within, which its messages show (pure).

Those types are much like the API's, with other names for the fields, and with all that is not set written out.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from lastcall_lab.apiserver.schema.types import SchemaNode, TypeTable
from lastcall_lab.apiserver.values.request import Object

_ACRONYMS = frozenset("api aws csi dns fc fs gce grpc http ip iscsi nfs os rbd se tcp tty uid".split())  # noqa: SIM905
_NAMES = {"cephfs": "CephFS", "storageos": "StorageOS"}
_TAGGED = "v1.LabelSelector"
"""A type of Kubernetes that is the API's own."""


@cache
def internal_fields(kind: str, *path: str) -> Mapping[str, SchemaNode]:
    """The fields of a part of a kind of ``v1``, by their names in the API."""
    node = TypeTable().find("", "v1", kind)
    for name in path:
        node = node.fields[name] if node else None
    if node is None:
        raise LookupError(f"the table of types has no {kind} {'.'.join(path)}")
    return node.fields


def to_internal(obj: Object, fields: Mapping[str, SchemaNode], names: Iterable[str]) -> Object:
    """The named fields of an object, in that order, under their names in Go."""
    return {_name(name): _value(obj.get(name), fields[name]) for name in names}


def unified_diff(old: Object, new: Object) -> str:
    """From one object to the other, in the unified form, with three lines around each change.

    It is for people, who look for the field in it that they must not change.
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
    """The name of a field in Go."""
    first = re.match("[a-z]*", name)
    word = first[0] if first else ""
    return _NAMES.get(name) or (word.upper() if word in _ACRONYMS else word.capitalize()) + name[len(word) :]
