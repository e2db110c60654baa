"""Types as field ownership sees them: atomic values, structs, and the keys of list items.

The rules are those of ``kube-openapi/pkg/schemaconv``. A shape is built once per place of a kind; it is a faster form
of ``types.SchemaNode`` for the walk at every write.
"""

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from lastcall_lab.apiserver.patches import field_sets
from lastcall_lab.apiserver.schema import SchemaNode

_SCALARS = {
    "string": "string",
    "bytes": "string",
    "bool": "boolean",
    "int32": "numeric",
    "int64": "numeric",
    "float64": "numeric",
}
_DEFAULT_KEYS = {"v1.ContainerPort": {"protocol": "TCP"}, "v1.ServicePort": {"protocol": "TCP"}}
"""The key fields of built-in kinds with a non-empty default, by item type."""


class MissingItemKey(Exception):
    """A list item lacks its key."""


class OwnershipShape:
    """One place in a kind of object. ``node`` None is a place of unknown type."""

    def __init__(self, node: SchemaNode | None, *, open_above: bool = False) -> None:
        self._node = node if node is not None and node.kind not in ("any", "object") else None
        self.free = self._node is None
        """Whether any type is allowed; the value then determines it."""
        struct = self._node.struct if self._node else None
        self.struct = struct is not None
        self.open = open_above or (struct is not None and struct.open)
        """Whether unknown fields are allowed."""
        self.map = self.free or (self._node is not None and self._node.kind in ("struct", "map"))
        self.list = self._node is not None and self._node.kind == "list"
        self.keys = self._keys()
        """The key fields of list items; None for an atomic list, empty if items are their own keys."""
        self.whole = self._whole()
        """Whether it is atomic."""

    def _keys(self) -> Sequence[str] | None:
        node = self._node
        if node is None or node.kind != "list":
            return None
        if node.list_type == "map":
            return tuple(node.list_keys)
        return () if node.list_type == "set" else None

    def _whole(self) -> bool:
        if self.free:
            return False
        return self.keys is None if self.list else not self.map or (self._node is not None and self._node.atomic)

    @cached_property
    def fields(self) -> Mapping[str, "OwnershipShape"]:
        """The fields of a struct."""
        fields = self._node.fields if self._node else {}
        return {name: OwnershipShape(node, open_above=self.open) for name, node in fields.items()}

    @cached_property
    def element(self) -> "OwnershipShape":
        """The items of a list, the values of a map, the unknown fields of a struct."""
        return OwnershipShape(self._node.element, open_above=self.open) if self._node else self

    @cached_property
    def _default_keys(self) -> Mapping[str, Any]:
        """The defaults of missing key fields."""
        node = self._node.element if self._node else None
        if node is None or node.struct is None:
            return {}
        named = {key: field.default for key, field in node.fields.items() if field.default is not None}
        # Go always writes these fields of built-in kinds, so their schema has an empty default.
        empty = {key: field.zero_value() for key, field in node.struct.always_written if field.write != "null"}
        return {**empty, **named, **_DEFAULT_KEYS.get(node.struct.go, {})}

    @cached_property
    def scalar(self) -> str:
        """``string``, ``boolean``, ``numeric``, or empty for other and unrestricted types."""
        return _SCALARS.get(self._node.kind, "") if self._node else ""

    @cached_property
    def zero(self) -> Any:
        """The value of a typed object before any write."""
        return self._node.zero_value() if self._node else {}

    def key(self, one: Any) -> str:
        """The key of a list item. MissingItemKey if it lacks one."""
        keys = self.keys or ()
        if not keys:
            return _own_key(one)
        if len(keys) == 1 and isinstance(one, dict) and keys[0] in one:
            name = one[keys[0]]
            return (
                field_sets.named_item_key(keys[0], name)
                if isinstance(name, str)
                else field_sets.item_key({keys[0]: name})
            )
        if not isinstance(one, dict):
            null = "a null element" if one is None else "non-map elements"
            raise MissingItemKey(f"associative list with keys may not have {null}")
        defaults = self._default_keys
        found = {key: one.get(key, defaults.get(key)) for key in keys if key in one or key in defaults}
        if not found:
            said = " ".join(f'"{key}"' for key in keys)
            raise MissingItemKey(
                f"associative list with keys has an element that omits all key fields [{said}]"
                " (and doesn't have default values for any key fields)"
            )
        return field_sets.item_key(found)

    def index(self, items: Sequence[Any] | None) -> dict[str, Any]:
        """The items by key; items with the same key form a ``DuplicateItems``, items without a key are omitted."""
        found: dict[str, Any] = {}
        for one in items or ():
            try:
                key = self.key(one)
            except MissingItemKey:
                continue
            if key not in found:
                found[key] = one
            elif isinstance(found[key], DuplicateItems):
                found[key].items.append(one)
            else:
                found[key] = DuplicateItems([found[key], one])
        return found


class DuplicateItems:
    """List items with the same key, treated as one value."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DuplicateItems) and self.items == other.items

    __hash__ = None  # type: ignore[assignment]  # it changes


@cache
def shared_shape(node: SchemaNode) -> OwnershipShape:
    """Of a kind of the table of types, which lives as long as the process: its servers share it."""
    return OwnershipShape(node)


def _own_key(one: Any) -> str:
    if isinstance(one, dict):
        raise MissingItemKey("associative list without keys has an element that's a map type")
    if isinstance(one, list):
        raise MissingItemKey("not supported: associative list with lists as elements")
    if one is None:
        raise MissingItemKey("associative list without keys has an element that's an explicit null")
    return field_sets.value_key(one)
