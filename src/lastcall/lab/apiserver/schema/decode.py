"""An object of JSON as Go's typed decoder reads it and its encoder writes it again; pure.

Fields that nobody knows are dropped and told, null is as good as nothing, empty values of fields that are left out when
empty are left out, and what is always written is there. The mistakes are in the words of ``encoding/json``: a mismatch
of types is told when all is read, and only the first; what a type's own reader refuses is told at once.
"""

from typing import Any

from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.schema import gojson, scalars
from lastcall.lab.apiserver.schema.types import Node, Struct

_PLAIN = {"string": str, "bool": bool}
_MANY = ("list", "map")
_LIMIT = 100
"""So many unknown fields are told."""


class Undecodable(ValueError):
    """The object cannot be read; the message is Go's."""


class Decoder:
    """Reads one object. ``unknown`` are the paths of fields that the type does not have, in their order."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self._path: list[str] = []
        self._names: list[str] = []
        self._mistake = ""

    def decode(self, obj: Object, struct: Struct) -> Object:
        """The object as it is stored. Undecodable if a type is wrong."""
        try:
            decoded = self._struct(obj, struct)
        except scalars.Fault as fault:
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
                plain = type(value) is _PLAIN.get(node.kind)
                new = value if plain else self._field(value, node, key, struct)
                if new or (node.write and node.kind not in _MANY):
                    result[key] = new
        for key, node in struct.written:
            if key not in result:
                result[key] = None if node.write == "null" else node.zero()
        return result

    def _field(self, value: Any, node: Node, key: str, struct: Struct) -> Any:
        self._names.append(key)
        self._path.append(f".{key}")
        new = self._value(value, node, struct)
        self._names.pop()
        self._path.pop()
        return new

    def _value(self, value: Any, node: Node, struct: Struct) -> Any:
        """The value at the place where the path is; ``struct`` is the one around it."""
        if value is None:
            return node.zero()
        match node.kind:
            case "struct" if isinstance(value, dict) and node.struct:
                return self._struct(value, node.struct)
            case "list" if isinstance(value, list) and node.element:
                return [self._inner(f"[{i}]", one, node.element, struct) for i, one in enumerate(value)]
            case "map" if isinstance(value, dict) and node.element:
                return {key: self._inner(f".{key}", one, node.element, struct) for key, one in value.items()}
            case "struct" | "list" | "map":
                return self._mismatch(gojson.name(value), node.go, struct)
        return self._scalar(value, node, struct)

    def _inner(self, step: str, value: Any, element: Node, struct: Struct) -> Any:
        if type(value) is _PLAIN.get(element.kind):
            return value
        self._path.append(step)
        new = self._value(value, element, struct)
        self._path.pop()
        return new

    def _scalar(self, value: Any, node: Node, struct: Struct) -> Any:
        read = scalars.READERS.get(node.kind)
        try:
            if read:
                return read(value)
        except scalars.Mismatch as wrong:
            return self._mismatch(wrong.said, wrong.go or node.go, struct)
        except scalars.Illegal as wrong:
            self._mistake = self._mistake or str(wrong)
            return None
        right = isinstance(value, _PLAIN[node.kind])
        return value if right else self._mismatch(gojson.name(value), node.go, struct)

    def _mismatch(self, said: str, go: str, struct: Struct) -> None:
        if not self._mistake:
            field = f"{struct.name}.{'.'.join(self._names)}"
            self._mistake = f"json: cannot unmarshal {said} into Go struct field {field} of type {go}"

    def _unknown(self, key: str) -> None:
        if len(self.unknown) < _LIMIT:
            self.unknown.append(f"{''.join(self._path)}.{key}"[1:])
