"""Caches results per object, so that only changed objects are evaluated again."""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from lastcall_lab.controllers.framework.view import Object, ObjectRef, View

T = TypeVar("T")


class FindingsCache(Generic[T]):
    """Results that depend only on an object and on a common basis. They are dropped with their objects."""

    def __init__(self) -> None:
        self._known: dict[ObjectRef, tuple[object, dict[str, tuple[Object, T]]]] = {}

    def find_for(
        self, key: ObjectRef, basis: object, objects: Iterable[tuple[str, Object]], find: Callable[[Object], T]
    ) -> list[T]:
        """For one key: the result of ``find`` for each object, in order; names must be unique.

        The view returns an unchanged object as the same instance. A different ``basis`` evaluates all objects again.
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
        """Drops the results of a key."""
        self._known.pop(key, None)


class NodeFindings(Generic[T]):
    """Results that depend only on one node; in a large cluster few nodes change between two calls."""

    def __init__(self, find: Callable[[Object], T]) -> None:
        self._find = find
        self._view: View | None = None
        self._found: dict[str, T] = {}
        self._marked = 0

    def find_by_node(self, view: View) -> Mapping[str, T]:
        """The results by node name, in order. The next call changes the returned mapping."""
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
