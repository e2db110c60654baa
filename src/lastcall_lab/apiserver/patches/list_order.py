"""The order of merged lists in strategic merge patches (pure).

Items that the patch orders get its order; the others stay between their neighbours in the object.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from lastcall_lab.apiserver.values import go_format


class InvalidPatch(Exception):
    """The patch is invalid for this object. Kubernetes responds 500 with this text."""


class MalformedDirective(InvalidPatch):
    """A directive of the patch is malformed. Kubernetes responds 400 with this text."""


class UnmergeableLists(InvalidPatch):
    """Lists of lists. Kubernetes responds 422."""


def missing_merge_key(item: Any, key: str) -> InvalidPatch:
    """An item lacks its merge key."""
    return InvalidPatch(f"map: {go_format.go_value(item)} does not contain declared merge key: {key}")


def merge_value(item: Any, key: str) -> Any:
    """The identity of an item: its merge key field, or without ``key`` the item itself."""
    if not key:
        return item
    if not isinstance(item, dict):
        raise InvalidPatch(f"expected a map[string]interface {{}}, but received a {go_format.go_type_name(item)}")
    if key not in item:
        raise missing_merge_key(item, key)
    return item[key]


class ItemPositions:
    """The first positions of values in constant time, because a body can hold a hundred thousand items."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._known: dict[Any, int] = {}
        for index, value in enumerate(values):
            self.add(value, index)

    def add(self, value: Any, index: int) -> None:
        """Records a position unless the value has one."""
        self._known.setdefault(_hashable(value), index)

    def find(self, value: Any) -> int | None:
        """The position; None if the value has none."""
        return self._known.get(_hashable(value))


def _hashable(value: Any) -> Any:
    if isinstance(value, dict | list):
        return type(value), msgspec.json.encode(value, order="sorted")
    return value


def common_item_type(*lists: Sequence[Any]) -> type:
    """The type of the items. InvalidPatch unless all have the same type, which is no list."""
    types = {type(item) for items in lists for item in items}
    if list in types:
        raise UnmergeableLists("lists of lists are not supported")
    if len(types) != 1:
        why = "list element types are not identical" if types else "no elements in any given slices"
        raise InvalidPatch(f"{why}: {go_format.go_value([list(items) for items in lists])}" if types else why)
    return types.pop()


def check_list_order(ours: Sequence[Any] | None, order: Sequence[Any], key: str) -> None:
    """InvalidPatch unless the patch's items follow its order; items to be deleted need not."""
    if not ours or not order:
        return
    wanted = [item for item in ours if not (isinstance(item, dict) and "$patch" in item)]
    rest = iter(order)
    for item in wanted:
        value = merge_value(item, key)
        if not any(merge_value(one, key) == value for one in rest):
            raise InvalidPatch(
                f"The order in patch list:\n{go_format.go_value(list(ours))}\n doesn't match $setElementOrder list:\n"
                f"{go_format.go_value(list(order))}\n"
            )


def arrange_items(items: Sequence[Any], order: Sequence[Any], before: Sequence[Any], key: str) -> list[Any]:
    """``items`` with those in ``order`` in that order, and the others at their places in ``before``."""
    ranks = ItemPositions(merge_value(one, key) for one in order)
    values = [merge_value(one, key) for one in before if not key or (isinstance(one, dict) and key in one)]
    seats, end = ItemPositions(values), len(values)
    named: list[tuple[int, int, Any]] = []
    others: list[tuple[int, Any]] = []
    for item in items:
        value = merge_value(item, key)
        rank, found = ranks.find(value), seats.find(value)
        seat = end if found is None else found
        if rank is None:
            others.append((seat, item))
        else:
            named.append((rank, seat, item))
    named.sort(key=lambda one: one[0])
    others.sort(key=lambda one: one[0])
    return list(_interleave([(seat, item) for _, seat, item in named], others, end))


def _interleave(named: Sequence[tuple[int, Any]], others: Sequence[tuple[int, Any]], end: int) -> Iterator[Any]:
    """Merges both lists, each in its order; ``end`` is the position of items without one."""
    left = 0
    for seat, item in named:
        while left < len(others) and others[left][0] < min(seat, end) and seat < end:
            yield others[left][1]
            left += 1
        yield item
    yield from (item for _, item in others[left:])
