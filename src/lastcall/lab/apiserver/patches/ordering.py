"""The order of merged lists in strategic merge patches (pure).

What the patch orders comes in its order; the other items stay between the neighbours that they have in the object.
"""

from collections.abc import Sequence
from typing import Any

from lastcall.lab.apiserver.patches import go


class BadPatch(Exception):
    """The patch makes no sense for this object. Kubernetes answers 500 with these words."""


class Malformed(BadPatch):
    """A directive of the patch is not in its form. Kubernetes answers 400 with these words."""


class Unmergeable(BadPatch):
    """Lists of lists. Kubernetes answers 422."""


def no_merge_key(item: Any, key: str) -> BadPatch:
    """An item lacks what tells it apart."""
    return BadPatch(f"map: {go.text(item)} does not contain declared merge key: {key}")


def merge_value(item: Any, key: str) -> Any:
    """What tells an item apart: a field of it, or without ``key`` the item itself."""
    if not key:
        return item
    if not isinstance(item, dict):
        raise BadPatch(f"expected a map[string]interface {{}}, but received a {go.type_name(item)}")
    if key not in item:
        raise no_merge_key(item, key)
    return item[key]


def place(items: Sequence[Any], key: str, value: Any) -> int | None:
    """Where the item with this value is; items that lack the key match nothing."""
    for index, item in enumerate(items):
        if key and not isinstance(item, dict):
            raise BadPatch(f"value for key {index} is not a map")
        if (item if not key else item.get(key)) == value and (not key or key in item):
            return index
    return None


def element_type(*lists: Sequence[Any]) -> type:
    """What the items are. BadPatch unless all are of one type, and no lists."""
    types = {type(item) for items in lists for item in items}
    if list in types:
        raise Unmergeable("lists of lists are not supported")
    if len(types) != 1:
        why = "list element types are not identical" if types else "no elements in any given slices"
        raise BadPatch(f"{why}: {go.text([list(items) for items in lists])}" if types else why)
    return types.pop()


def check(ours: Sequence[Any] | None, order: Sequence[Any], key: str) -> None:
    """BadPatch unless the items of the patch are in its order; items that are to be deleted need not be."""
    if not ours or not order:
        return
    wanted = [item for item in ours if not (isinstance(item, dict) and "$patch" in item)]
    rest = iter(order)
    for item in wanted:
        value = merge_value(item, key)
        if not any(merge_value(one, key) == value for one in rest):
            raise BadPatch(
                f"The order in patch list:\n{go.text(list(ours))}\n doesn't match $setElementOrder list:\n"
                f"{go.text(list(order))}\n"
            )


def arranged(items: Sequence[Any], order: Sequence[Any], before: Sequence[Any], key: str) -> list[Any]:
    """``items`` with those that ``order`` names in that order, and the others where ``before`` has them."""
    ranks = [merge_value(one, key) for one in order]
    seats = [merge_value(one, key) for one in before if not key or (isinstance(one, dict) and key in one)]
    named = [item for item in items if merge_value(item, key) in ranks]
    others = [item for item in items if merge_value(item, key) not in ranks]
    named.sort(key=lambda item: ranks.index(merge_value(item, key)))
    others.sort(key=lambda item: _seat(item, seats, key))
    result = []
    while named and others:
        left, right = _seat(others[0], seats, key), _seat(named[0], seats, key)
        known = left < len(seats) and right < len(seats)
        result.append((others if known and left < right else named).pop(0))
    return [*result, *named, *others]


def _seat(item: Any, seats: Sequence[Any], key: str) -> int:
    """Where the object has the item; behind its end if it has not."""
    value = merge_value(item, key)
    return seats.index(value) if value in seats else len(seats)
