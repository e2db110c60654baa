"""The objects of a resource by the value of one field, as the API server's watch cache keeps them: pods by their node."""

from collections.abc import Mapping, Sequence

FIELDS: Mapping[str, str] = {"pods": "spec.nodeName"}
"""The field of each resource that has an index (``NodeNameIndexFunc`` in ``registry/core/pod``); all others are searched."""

Where = tuple[str, str]
"""``store.Place``."""


class FieldIndex:
    """Of one resource, by one field. What has no value for it is found by the empty one."""

    def __init__(self, field: str) -> None:
        self.field = field
        self._found: dict[str, set[Where]] = {}

    def add(self, where: Where, fields: Mapping[str, str]) -> None:
        """An object is there, with these fields."""
        self._found.setdefault(fields.get(self.field, ""), set()).add(where)

    def remove(self, where: Where, fields: Mapping[str, str]) -> None:
        """The same object is not there any more, or not with these fields."""
        value = fields.get(self.field, "")
        self._found[value].remove(where)
        if not self._found[value]:
            del self._found[value]

    def find_places(self, value: str) -> Sequence[Where]:
        """Where the objects with this value are, in order."""
        return sorted(self._found.get(value, ()))
