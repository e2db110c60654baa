"""The order of merged lists in strategic merge patches (pure).

What the patch orders comes in its order; the other items stay between the neighbours that they have in the object.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from lastcall_lab.apiserver.values import go_format


class InvalidPatch(Exception):
    """The patch makes no sense for this object. Kubernetes answers 500 with these words."""


class MalformedDirective(InvalidPatch):
    """A directive of the patch is not in its form. Kubernetes answers 400 with these words."""


class UnmergeableLists(InvalidPatch):
    """Lists of lists. Kubernetes answers 422."""


def missing_merge_key(item: Any, key: str) -> InvalidPatch:
    """An item lacks what tells it apart."""
    return InvalidPatch(f"map: {go_format.go_value(item)} does not contain declared merge key: {key}")


def merge_value(item: Any, key: str) -> Any:
    """What tells an item apart: a field of it, or without ``key`` the item itself."""
    if not key:
        return item
    if not isinstance(item, dict):
        raise InvalidPatch(f"expected a map[string]interface {{}}, but received a {go_format.go_type_name(item)}")
    if key not in item:
        raise missing_merge_key(item, key)
    return item[key]


class ItemPositions:
    """Where each of some values is first, without looking at all of them: a body holds a hundred thousand."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._known: dict[Any, int] = {}
        for index, value in enumerate(values):
            self.add(value, index)

    def add(self, value: Any, index: int) -> None:
        """Unless it has a place already."""
        self._known.setdefault(_hashable(value), index)

    def find(self, value: Any) -> int | None:
        """None if it has no place."""
        return self._known.get(_hashable(value))


def _hashable(value: Any) -> Any:
    if isinstance(value, dict | list):
        return type(value), msgspec.json.encode(value, order="sorted")
    return value


def common_item_type(*lists: Sequence[Any]) -> type:
    """What the items are. BadPatch unless all are of one type, and no lists."""
    types = {type(item) for items in lists for item in items}
    if list in types:
        raise UnmergeableLists("lists of lists are not supported")
    if len(types) != 1:
        why = "list element types are not identical" if types else "no elements in any given slices"
        raise InvalidPatch(f"{why}: {go_format.go_value([list(items) for items in lists])}" if types else why)
    return types.pop()


def check_list_order(ours: Sequence[Any] | None, order: Sequence[Any], key: str) -> None:
    """BadPatch unless the items of the patch are in its order; items that are to be deleted need not be."""
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
    """``items`` with those that ``order`` names in that order, and the others where ``before`` has them."""
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
    return list(_woven([(seat, item) for _, seat, item in named], others, end))


def _woven(named: Sequence[tuple[int, Any]], others: Sequence[tuple[int, Any]], end: int) -> Iterator[Any]:
    """Both in one, each in its order; items with their seats, ``end`` of those that have none."""
    left = 0
    for seat, item in named:
        while left < len(others) and others[left][0] < min(seat, end) and seat < end:
            yield others[left][1]
            left += 1
        yield item
    yield from (item for _, item in others[left:])
