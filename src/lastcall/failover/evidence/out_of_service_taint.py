"""The taint out-of-service among the others of a Node (pure): added to them and taken from them, never put in their place.

The list is written whole, under the Node's resourceVersion: the API knows no other way to change it.
"""

from collections.abc import Iterable
from typing import TypeVar

from lastcall import names
from lastcall.model.tolerations import NO_EXECUTE, Taint

T = TypeVar("T", bound=Taint)

OURS = Taint(key=names.OUT_OF_SERVICE, value="nodeshutdown", effect=NO_EXECUTE)
"""As KEP-2268 has it. The effect has to be NoExecute: only then the pods are deleted that Pod GC then removes."""


def is_like_ours(taint: Taint) -> bool:
    """A Node has one taint of a key and an effect at most, whoever has set it and to which value."""
    return (taint.key, taint.effect) == (OURS.key, OURS.effect)


def add_taint(taints: Iterable[T], ours: T) -> tuple[T, ...]:
    """All that are there, and ours unless there is one like it."""
    there = tuple(taints)
    return there if any(is_like_ours(one) for one in there) else (*there, ours)


def remove_taint(taints: Iterable[T], *, by_hand: bool) -> tuple[T, ...]:
    """All but ours; ``by_hand``: but every one of that key."""
    return tuple(one for one in taints if not (one.key == OURS.key if by_hand else is_like_ours(one)))
