"""A fast path of ``decoder.Decoder`` for objects without errors and unknown fields, which is nearly all (pure).

It does not track the path that messages need: at any finding it raises ``NeedsFullDecoder``, and the full decoder
reports it. A value that is identical to the stored one was decoded before and is not decoded again.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lastcall_lab.apiserver.schema import go_scalars
from lastcall_lab.apiserver.schema.types import SchemaNode, Struct
from lastcall_lab.apiserver.values.request import Object

_NOTHING: Object = {}


class NeedsFullDecoder(Exception):
    """There is an error or a case that only the full decoder handles."""


def decode_plain(obj: Object, struct: Struct, before: Any = None) -> Object:
    """The object to store; ``before`` is the stored one. NeedsFullDecoder if the fast path does not apply."""
    fields, result = struct.fields, {}
    known: Object = before if before.__class__ is dict else _NOTHING
    for key, value in obj.items():
        node = fields.get(key)
        if node is None:
            raise NeedsFullDecoder
        if value.__class__ is node.plain or value is None or value is (old := known.get(key)):
            new = value
        else:
            new = _value(value, node, old)
        if new or (node.kept and new is not None):
            result[key] = new
    for key, node in struct.always_written:
        if key not in result:
            result[key] = None if node.write == "null" else node.zero_value()
    return result


def _value(value: Any, node: SchemaNode, before: Any) -> Any:
    if reader := _CONTAINERS.get(node.kind):
        return reader(value, node, before)
    if scalar := go_scalars.READERS.get(node.kind):
        try:
            return scalar(value)
        except ValueError:
            raise NeedsFullDecoder from None
    raise NeedsFullDecoder


def _struct(value: Any, node: SchemaNode, before: Any) -> Object:
    if value.__class__ is not dict or node.struct is None:
        raise NeedsFullDecoder
    return decode_plain(value, node.struct, before)


def _list(value: Any, node: SchemaNode, before: Any) -> list[Any]:
    element = node.element
    if value.__class__ is not list or element is None:
        raise NeedsFullDecoder
    known = frozenset(map(id, before)) if before.__class__ is list else frozenset()
    return [one if one.__class__ is element.plain or id(one) in known else _inner(one, element) for one in value]


def _map(value: Any, node: SchemaNode, before: Any) -> Object:
    element = node.element
    if value.__class__ is not dict or element is None:
        raise NeedsFullDecoder
    return {key: one if one.__class__ is element.plain else _inner(one, element) for key, one in value.items()}


def _inner(value: Any, element: SchemaNode) -> Any:
    if value is None:
        raise NeedsFullDecoder
    return _value(value, element, None)


_CONTAINERS: Mapping[str, Callable[[Any, SchemaNode, Any], Any]] = {"struct": _struct, "list": _list, "map": _map}
