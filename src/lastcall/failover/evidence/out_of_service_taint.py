"""The out-of-service taint in a Node's list of taints (pure): it is added and removed, and never replaces another.

The whole list is written under the Node's resourceVersion, because the API offers no other way to change it.
"""

from collections.abc import Iterable
from typing import TypeVar

from lastcall import names
from lastcall.model.tolerations import NO_EXECUTE, Taint

T = TypeVar("T", bound=Taint)

OURS = Taint(key=names.OUT_OF_SERVICE, value="nodeshutdown", effect=NO_EXECUTE)
"""As in KEP-2268. The effect must be NoExecute: only then are the pods deleted that Pod GC force-deletes."""


def is_like_ours(taint: Taint) -> bool:
    """Compares key and effect: a Node has at most one taint for both, whatever its value and whoever set it."""
    return (taint.key, taint.effect) == (OURS.key, OURS.effect)


def add_taint(taints: Iterable[T], ours: T) -> tuple[T, ...]:
    """The given taints, with ours added unless an equal one exists."""
    there = tuple(taints)
    return there if any(is_like_ours(one) for one in there) else (*there, ours)


def remove_taint(taints: Iterable[T], *, by_hand: bool) -> tuple[T, ...]:
    """The given taints without ours; ``by_hand``: without all of that key."""
    return tuple(one for one in taints if not (one.key == OURS.key if by_hand else is_like_ours(one)))
