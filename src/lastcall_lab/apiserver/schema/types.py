"""The types of the API: which fields there are, how they are written, and how lists and maps of them merge.

The table (data/types.json.gz, made by tools/schema_types.py) has for every struct its name in Go, its kinds, and its
fields in the order of Go. A field's ``type`` is a scalar (see ``SchemaNode.kind``), ``[]`` and the type of the items, ``{}``
and the type of the values, or ``#`` and the name of a struct. ``write`` says when an encoder of Go writes the field:
``always``, ``set`` (a pointer: whatever it points to), ``null`` (a pointer, as null if there is nothing), or, without a
word, if it is not empty.
"""

import gzip
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import resources
from typing import Any

import msgspec

from lastcall_lab.apiserver.values.request import Object

_CONTAINERS = {"#": "struct", "[": "list", "{": "map"}
_PLAIN: Mapping[str, type] = {"string": str, "bool": bool}
_ZEROS: Mapping[str, Any] = {
    "string": "",
    "bytes": None,
    "bool": False,
    "int32": 0,
    "int64": 0,
    "float64": 0,
    "quantity": "0",
    "intorstring": 0,
    "duration": "0s",
}


class SchemaNode:
    """One place in a kind of object: a field, an item of a list or a value of a map."""

    def __init__(self, types: "TypeTable", facts: Mapping[str, Any]) -> None:
        self._types = types
        self._type: str = facts["type"]
        self._go: str = facts.get("go", "")
        self.kind: str = _CONTAINERS.get(self._type[0], self._type)
        """``struct``, ``map``, ``list``, ``string``, ``bool``, ``int32``, ``int64``, ``float64``, ``bytes``, ``time``,
        ``microtime``, ``duration``, ``quantity``, ``intorstring``; ``raw`` (an object of any shape), ``any``."""
        self.plain = _PLAIN.get(self.kind)
        """The type of its values in Python, if they are stored as they come."""
        self.write: str = facts.get("write", "")
        """When it is written, as the table has it."""
        self.kept: bool = self.write != "" and self.kind not in ("list", "map")
        """Whether it is written though it is empty."""
        self.patch_strategy: Sequence[str] = tuple(facts["strategy"].split(",")) if "strategy" in facts else ()
        """``merge``, ``retainKeys``, ``replace`` of a strategic merge patch; nothing means that lists are replaced."""
        self.merge_key: str = facts.get("merge_key", "")
        """The field by which a strategic merge patch tells the items of a list apart; empty for lists of scalars."""
        self.list_type: str = facts.get("list", "atomic")
        """``atomic``, ``set`` or ``map``: how server-side apply sees a list."""
        self.list_keys: Sequence[str] = tuple(facts.get("keys", ()))
        """The fields that together tell the items of a list of type ``map`` apart."""
        self.default: Any = facts.get("default")
        """What a field of a custom resource is if nobody says it."""
        self._map_type: str = facts.get("map", "")

    @cached_property
    def struct(self) -> "Struct | None":
        """The struct, if it is one."""
        return self._types.struct(self._type[1:]) if self.kind == "struct" else None

    @cached_property
    def element(self) -> "SchemaNode | None":
        """What the items of a list, or the values of a map, are; None for everything else."""
        if self.kind not in ("list", "map"):
            return None
        go = self._go if self._go.startswith(("[]", "map[")) else ""
        facts = {"type": self._type[2:], "write": "set"}
        return SchemaNode(self._types, {**facts, "go": go.partition("]")[2]} if go else facts)

    @property
    def fields(self) -> Mapping[str, "SchemaNode"]:
        """The fields of a struct, by their names in JSON and in the order of Go; nothing for everything else."""
        return self.struct.fields if self.struct else {}

    @property
    def atomic(self) -> bool:
        """Whether server-side apply sees it as one value, whatever is in it."""
        if self.kind == "list":
            return self.list_type == "atomic"
        map_type = self._map_type or (self.struct.map_type if self.struct else "")
        return self.kind not in ("struct", "map") or map_type == "atomic"

    def at(self, key: str) -> "SchemaNode | None":
        """What is at ``key`` of a struct or of a map; None if there can be nothing."""
        return self.element if self.kind == "map" else self.fields.get(key)

    @cached_property
    def go_type(self) -> str:
        """The name of its type in Go, as messages have it: ``[]v1.Container``, ``map[string]string``, ``int32``."""
        if self._go:
            return self._go
        if self.struct:
            return self.struct.go
        if self.element:
            return f"{'[]' if self.kind == 'list' else 'map[string]'}{self.element.go_type}"
        return self.kind

    def zero_value(self) -> Any:
        """What an encoder writes for a value that nobody has set."""
        return self.struct.zero_object() if self.struct else _ZEROS.get(self.kind)


class Struct:
    """A type with fields. ``kinds`` are the (group, version, kind) of objects of this type."""

    def __init__(self, types: "TypeTable", facts: Mapping[str, Any]) -> None:
        self._types = types
        self._facts = facts
        self.go: str = facts["go"]
        self.name = self.go.rpartition(".")[2]
        self.map_type: str = facts.get("map", "")
        self.open: bool = facts.get("open", False)
        """Whether other fields than those that are known can be in it, and in what is below it."""

    @cached_property
    def fields(self) -> Mapping[str, SchemaNode]:
        """All of them, by their names in JSON and in the order of Go."""
        return {name: SchemaNode(self._types, facts) for name, facts in self._facts["fields"].items()}

    @cached_property
    def always_written(self) -> Sequence[tuple[str, SchemaNode]]:
        """Those that are written though nobody has set them."""
        return [(name, node) for name, node in self.fields.items() if node.write in ("always", "null")]

    def zero_object(self) -> Object:
        """What an encoder writes for a struct of which nothing is set."""
        return {name: None if node.write == "null" else node.zero_value() for name, node in self.always_written}


class TypeTable:
    """The table. It is read when something is asked for the first time, in a few milliseconds."""

    def __init__(self) -> None:
        self._structs: dict[str, Struct] = {}
        self._nodes: dict[str, SchemaNode] = {}

    def struct(self, name: str) -> Struct:
        """By its name in OpenAPI, such as ``io.k8s.api.core.v1.Pod``. KeyError if there is none."""
        if name not in self._structs:
            self._structs[name] = Struct(self, self._table[name])
        return self._structs[name]

    def find(self, group: str, version: str, kind: str) -> SchemaNode | None:
        """The type of the objects of a kind."""
        name = self._kinds.get((group, version, kind))
        if name and name not in self._nodes:
            self._nodes[name] = self.node(name)
        return self._nodes[name] if name else None

    def node(self, name: str) -> SchemaNode:
        """A struct by its name in OpenAPI, as a place of its own."""
        return SchemaNode(self, {"type": f"#{name}"})

    @cached_property
    def _table(self) -> Mapping[str, Mapping[str, Any]]:
        data = resources.files("lastcall_lab.apiserver").joinpath("data/types.json.gz").read_bytes()
        table: Mapping[str, Mapping[str, Any]] = msgspec.json.decode(gzip.decompress(data))
        return table

    @cached_property
    def _kinds(self) -> Mapping[tuple[str, str, str], str]:
        named = ((tuple(kind), name) for name, facts in self._table.items() for kind in facts.get("kinds", ()))
        return {(group, version, kind): name for (group, version, kind), name in named}
