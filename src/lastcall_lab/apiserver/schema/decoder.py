"""Decodes and re-encodes a JSON object like Go's typed decoder and encoder; pure.

It drops and reports unknown fields, treats null as unset, omits empty ``omitempty`` fields and adds fields that Go
always writes. Errors have the words of ``encoding/json``: only the first type mismatch is reported, at the end; the
error of a type's own unmarshaller is raised at once.
"""

from typing import Any

from lastcall_lab.apiserver.encoding import go_json
from lastcall_lab.apiserver.schema import go_scalars
from lastcall_lab.apiserver.schema.types import SchemaNode, Struct
from lastcall_lab.apiserver.values.request import Object

_LIMIT = 100
"""The maximum number of reported unknown fields."""


class Undecodable(ValueError):
    """The object cannot be decoded; the message is Go's."""


class Decoder:
    """Decodes one object. ``unknown`` are the paths of unknown fields, in order."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self._path: list[str | int] = []
        self._names: list[str] = []
        self._mistake = ""

    def decode(self, obj: Object, struct: Struct) -> Object:
        """The object to store. Undecodable for a type mismatch."""
        try:
            decoded = self._struct(obj, struct)
        except go_scalars.ScalarRefused as fault:
            raise Undecodable(str(fault)) from None
        if self._mistake:
            raise Undecodable(self._mistake)
        return decoded

    def _struct(self, obj: Object, struct: Struct) -> Object:
        fields, result = struct.fields, {}
        for key, value in obj.items():
            node = fields.get(key)
            if node is None:
                self._unknown(key)
            elif value is not None:
                new = value if value.__class__ is node.plain else self._field(value, node, key, struct)
                if new or node.kept:
                    result[key] = new
        for key, node in struct.always_written:
            if key not in result:
                result[key] = None if node.write == "null" else node.zero_value()
        return result

    def _field(self, value: Any, node: SchemaNode, key: str, struct: Struct) -> Any:
        self._names.append(key)
        self._path.append(key)
        new = self._value(value, node, struct)
        self._names.pop()
        self._path.pop()
        return new

    def _value(self, value: Any, node: SchemaNode, struct: Struct) -> Any:
        """The value at the current path; ``struct`` is the struct around it."""
        if value is None:
            return node.zero_value()
        kind, element = node.kind, node.element
        if kind == "struct" and isinstance(value, dict) and node.struct:
            return self._struct(value, node.struct)
        if kind == "list" and isinstance(value, list) and element:
            return [self._inner(i, one, element, struct) for i, one in enumerate(value)]
        if kind == "map" and isinstance(value, dict) and element:
            return {key: self._inner(key, one, element, struct) for key, one in value.items()}
        if kind in ("struct", "list", "map"):
            return self._mismatch(go_scalars.ScalarTypeMismatch(go_json.json_type_name(value)), value, node, struct)
        return self._scalar(value, node, struct)

    def _inner(self, step: str | int, value: Any, element: SchemaNode, struct: Struct) -> Any:
        if value.__class__ is element.plain:
            return value
        self._path.append(step)
        new = self._value(value, element, struct)
        self._path.pop()
        return new

    def _scalar(self, value: Any, node: SchemaNode, struct: Struct) -> Any:
        read = go_scalars.READERS.get(node.kind)
        try:
            if read:
                return read(value)
        except go_scalars.ScalarTypeMismatch as wrong:
            return self._mismatch(wrong, value, node, struct)
        except go_scalars.IllegalScalar as wrong:
            return self._illegal(str(wrong))
        if node.plain and isinstance(value, node.plain):
            return value
        return self._mismatch(go_scalars.ScalarTypeMismatch(go_json.json_type_name(value)), value, node, struct)

    def _mismatch(self, wrong: go_scalars.ScalarTypeMismatch, value: Any, node: SchemaNode, struct: Struct) -> Any:
        """The replacement for a value of the wrong type."""
        place = f"Go struct field {struct.name}.{'.'.join(self._names)} of type {wrong.go or node.go_type}"
        self._mistake = self._mistake or f"json: cannot unmarshal {wrong.said} into {place}"

    def _illegal(self, why: str) -> None:
        self._mistake = self._mistake or why

    def _unknown(self, key: str) -> None:
        if len(self.unknown) < _LIMIT:
            steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in (*self._path, key))
            self.unknown.append("".join(steps)[1:])


class Converter(Decoder):
    """Decodes the result of a strategic merge patch, in the words of ``runtime.DefaultUnstructuredConverter``.

    The first error in the order of Go's fields is raised at once. Integers may have a fractional part of zero.
    """

    def decode(self, obj: Object, struct: Struct) -> Object:
        """The object to store. Undecodable for a type mismatch."""
        try:
            decoded = super().decode(obj, struct)
        except Undecodable:
            return _InOrder().decode(obj, struct)
        self.unknown.sort()
        return decoded

    def _mismatch(self, wrong: go_scalars.ScalarTypeMismatch, value: Any, node: SchemaNode, struct: Struct) -> Any:
        if isinstance(value, float) and value.is_integer() and node.kind in ("int32", "int64"):
            return int(value)
        raise go_scalars.ScalarRefused(_conversion(wrong, value, node))

    def _illegal(self, why: str) -> None:
        raise go_scalars.ScalarRefused(f"error decoding from json: {why}")


class _InOrder(Converter):
    """Decodes again in field order after an error, because the order determines which error is the first."""

    def decode(self, obj: Object, struct: Struct) -> Object:
        return Decoder.decode(self, obj, struct)

    def _struct(self, obj: Object, struct: Struct) -> Object:
        known = {name: obj[name] for name in struct.fields if name in obj}
        return super()._struct({**known, **obj}, struct)


_SOURCES = {str: "string", bool: "bool", int: "int64", float: "float64", dict: "map", list: "slice"}


def _conversion(wrong: go_scalars.ScalarTypeMismatch, value: Any, node: SchemaNode) -> str:
    source = _SOURCES[type(value)]
    match node.kind:
        case "struct":
            return f"cannot restore struct from: {source}"
        case "list" | "bytes":
            return f"cannot restore slice from {source}"
        case "map":
            return f"cannot restore map from {source}"
        case "intorstring" | "time" | "microtime":
            return f"json: cannot unmarshal {wrong.said} into Go value of type {wrong.go}"
        case "string" if source == "int64":
            return f"cannot convert {source} to {node.go_type}"
        case "int32" | "int64" if source == "float64":
            return f"cannot convert {source} to {node.go_type}"
    return f"unrecognized type: {node.kind}"
