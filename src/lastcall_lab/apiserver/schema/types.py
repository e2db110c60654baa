"""The types of the API: fields, their encoding, and how lists and maps merge.

The table (data/types.json.gz, made by tools/schema_types.py) holds for every struct its Go name, its kinds, and its
fields in Go's order. A field's ``type`` is a scalar (see ``SchemaNode.kind``), ``[]`` and the type of the items, ``{}``
and the type of the values, or ``#`` and the name of a struct. ``write`` says when Go's encoder writes the field:
``always``, ``set`` (a non-nil pointer), ``null`` (a pointer, also as null), or, if absent, when it is not empty.

A group that is served on request has a table of its own (data/types-GROUP-VERSION.json, in the same form, from the
sources of a later release). What it says of a known struct are further fields of it.
"""

import gzip
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
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
        """The Python type of its values, if they are stored unchanged."""
        self.write: str = facts.get("write", "")
        """When it is written, as in the table."""
        self.kept: bool = self.write != "" and self.kind not in ("list", "map")
        """Whether it is written even if empty."""
        self.patch_strategy: Sequence[str] = tuple(facts["strategy"].split(",")) if "strategy" in facts else ()
        """``merge``, ``retainKeys``, ``replace`` of a strategic merge patch; without one, lists are replaced."""
        self.merge_key: str = facts.get("merge_key", "")
        """The merge key of list items in a strategic merge patch; empty for lists of scalars."""
        self.list_type: str = facts.get("list", "atomic")
        """``atomic``, ``set`` or ``map``: the list type in server-side apply."""
        self.list_keys: Sequence[str] = tuple(facts.get("keys", ()))
        """The key fields of the items of a list of type ``map``."""
        self.default: Any = facts.get("default")
        """The default of a custom resource's field."""
        self._map_type: str = facts.get("map", "")

    @cached_property
    def struct(self) -> "Struct | None":
        """The struct, if the type is one."""
        return self._types.struct(self._type[1:]) if self.kind == "struct" else None

    @cached_property
    def element(self) -> "SchemaNode | None":
        """The type of a list's items or a map's values; None for other types."""
        if self.kind not in ("list", "map"):
            return None
        go = self._go if self._go.startswith(("[]", "map[")) else ""
        facts = {"type": self._type[2:], "write": "set"}
        return SchemaNode(self._types, {**facts, "go": go.partition("]")[2]} if go else facts)

    @property
    def fields(self) -> Mapping[str, "SchemaNode"]:
        """The fields of a struct by JSON name, in Go's order; empty for other types."""
        return self.struct.fields if self.struct else {}

    @property
    def atomic(self) -> bool:
        """Whether server-side apply treats it as one value."""
        if self.kind == "list":
            return self.list_type == "atomic"
        map_type = self._map_type or (self.struct.map_type if self.struct else "")
        return self.kind not in ("struct", "map") or map_type == "atomic"

    def at(self, key: str) -> "SchemaNode | None":
        """The type at ``key`` of a struct or a map; None if it does not exist."""
        return self.element if self.kind == "map" else self.fields.get(key)

    @cached_property
    def go_type(self) -> str:
        """Its type name in Go, as in messages: ``[]v1.Container``, ``map[string]string``, ``int32``."""
        if self._go:
            return self._go
        if self.struct:
            return self.struct.go
        if self.element:
            return f"{'[]' if self.kind == 'list' else 'map[string]'}{self.element.go_type}"
        return self.kind

    def zero_value(self) -> Any:
        """What Go's encoder writes for an unset value."""
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
        """Whether unknown fields are allowed in it and below it."""

    @cached_property
    def fields(self) -> Mapping[str, SchemaNode]:
        """All fields by JSON name, in Go's order."""
        return {name: SchemaNode(self._types, facts) for name, facts in self._facts["fields"].items()}

    @cached_property
    def always_written(self) -> Sequence[tuple[str, SchemaNode]]:
        """The fields that are written even if unset."""
        return [(name, node) for name, node in self.fields.items() if node.write in ("always", "null")]

    def zero_object(self) -> Object:
        """What Go's encoder writes for an empty struct."""
        return {name: None if node.write == "null" else node.zero_value() for name, node in self.always_written}


class TypeTable:
    """The table, loaded in a few milliseconds at the first access; with those of ``optional`` (``GROUP/VERSION``)."""

    def __init__(self, optional: Sequence[str] = ()) -> None:
        self._optional = optional
        self._structs: dict[str, Struct] = {}
        self._nodes: dict[str, SchemaNode] = {}

    def struct(self, name: str) -> Struct:
        """A struct by its OpenAPI name, such as ``io.k8s.api.core.v1.Pod``. KeyError if it does not exist."""
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
        """A struct by its OpenAPI name, as a ``SchemaNode``."""
        return SchemaNode(self, {"type": f"#{name}"})

    @cached_property
    def _table(self) -> Mapping[str, Mapping[str, Any]]:
        table: dict[str, Mapping[str, Any]] = msgspec.json.decode(gzip.decompress(_read_data("types.json.gz")))
        for one in self._optional:
            more: Mapping[str, Mapping[str, Any]] = msgspec.json.decode(
                _read_data(f"types-{one.replace('/', '-')}.json")
            )
            table |= {name: _add_fields(table.get(name, {}), facts) for name, facts in more.items()}
        return table

    @cached_property
    def _kinds(self) -> Mapping[tuple[str, str, str], str]:
        named = ((tuple(kind), name) for name, facts in self._table.items() for kind in facts.get("kinds", ()))
        return {(group, version, kind): name for (group, version, kind), name in named}


@cache
def shared_table(*optional: str) -> TypeTable:
    """The table with those of ``optional``, one for all servers of a process: nobody changes it, and it grows by use."""
    return TypeTable(optional)


def _read_data(name: str) -> bytes:
    return resources.files("lastcall_lab.apiserver").joinpath(f"data/{name}").read_bytes()


def _add_fields(known: Mapping[str, Any], more: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**known, **more, "fields": {**known.get("fields", {}), **more["fields"]}}
