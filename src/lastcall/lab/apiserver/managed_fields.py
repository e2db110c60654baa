"""``metadata.managedFields``: who wrote which field last."""

from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.scheme import Resource


class ManagedFields:
    """Keeps the record up to date with every write."""

    def created(self, obj: Object, manager: str, resource: Resource, wall: float) -> None:
        """All fields of a new object are the manager's."""

    def updated(
        self, new: Object, old: Object, manager: str, resource: Resource, subresource: str, wall: float
    ) -> None:
        """The fields that differ from ``old`` are the manager's now."""
