"""What was found of objects, so that of many only those are looked at again that have changed since."""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from lastcall_lab.controllers.framework.view import Object, ObjectRef, View

T = TypeVar("T")


class FindingsCache(Generic[T]):
    """Findings that follow from an object and from what they rest on alone; they go with their objects."""

    def __init__(self) -> None:
        self._known: dict[ObjectRef, tuple[object, dict[str, tuple[Object, T]]]] = {}

    def find_for(
        self, key: ObjectRef, basis: object, objects: Iterable[tuple[str, Object]], find: Callable[[Object], T]
    ) -> list[T]:
        """For one key: what ``find`` finds of each object, in their order; their names are told apart.

        An object that the view hands out again is the same; another ``basis`` than the last time asks all again.
        """
        rested, before = self._known.get(key, (basis, {}))
        if rested != basis:
            before = {}
        now: dict[str, tuple[Object, T]] = {}
        for name, obj in objects:
            known = before.get(name)
            now[name] = known if known is not None and known[0] is obj else (obj, find(obj))
        self._known[key] = basis, now
        return [found for _, found in now.values()]

    def forget(self, key: ObjectRef) -> None:
        """It is not asked for any more."""
        self._known.pop(key, None)


class NodeFindings(Generic[T]):
    """What follows from each node of a view alone; of a large cluster few have changed since the last question."""

    def __init__(self, find: Callable[[Object], T]) -> None:
        self._find = find
        self._view: View | None = None
        self._found: dict[str, T] = {}
        self._marked = 0

    def find_by_node(self, view: View) -> Mapping[str, T]:
        """By the names of the nodes, in their order; it changes with the next question."""
        if view is not self._view:
            self._view, self._found, self._marked = view, {}, 0
        known = len(self._found)
        for name in view.changed_nodes(self._marked):
            node = view.get("nodes", "", name)
            if node is None:
                known -= self._found.pop(name, None) is not None
            else:
                self._found[name] = self._find(node)
        self._marked = view.node_change_count
        if len(self._found) > known:
            self._found = dict(sorted(self._found.items()))
        return self._found
