"""An index of a resource by one field, as in the API server's watch cache: pods by node."""

from collections.abc import Mapping, Sequence

FIELDS: Mapping[str, str] = {"pods": "spec.nodeName"}
"""The indexed field of each resource (``NodeNameIndexFunc`` in ``registry/core/pod``); others need a scan."""

Where = tuple[str, str]
"""``store.Place``."""


class FieldIndex:
    """One resource by one field. Objects without a value are indexed under the empty one."""

    def __init__(self, field: str) -> None:
        self.field = field
        self._found: dict[str, set[Where]] = {}

    def add(self, where: Where, fields: Mapping[str, str]) -> None:
        """Adds an object with these fields."""
        self._found.setdefault(fields.get(self.field, ""), set()).add(where)

    def remove(self, where: Where, fields: Mapping[str, str]) -> None:
        """Removes an object with these fields."""
        value = fields.get(self.field, "")
        self._found[value].remove(where)
        if not self._found[value]:
            del self._found[value]

    def find_places(self, value: str) -> Sequence[Where]:
        """The sorted places of the objects with this value."""
        return sorted(self._found.get(value, ()))
