"""Structural sharing: the unchanged parts of a patched object keep their identity (pure).

Comparisons stop at identical parts, and the decoder does not read them again (``schema/fast_decoder.py``). A shared
part belongs to both the old and the new object and must not be changed in place.
"""

from collections.abc import Callable
from operator import is_
from typing import Any

import msgspec

from lastcall_lab.apiserver.values.request import Object

_ENCODER = msgspec.json.Encoder()
_GONE: Any = object()


def share_items(before: list[Any], after: list[Any], made: Callable[[Any], Any]) -> list[Any]:
    """The items of ``after``: those of ``before`` where the JSON is equal, and ``made`` of the others."""
    known = {_ENCODER.encode(one): one for one in before}
    found = [(known.get(_ENCODER.encode(one), _GONE), one) for one in after]
    return share_list(before, [made(one) if there is _GONE else there for there, one in found])


def share_list(before: list[Any], after: list[Any]) -> list[Any]:
    """``before`` if ``after`` has identical items, otherwise ``after``."""
    return before if len(before) == len(after) and all(map(is_, before, after)) else after


def share_map(before: Object, after: Object) -> Object:
    """``before`` if ``after`` has identical values in the same order, otherwise ``after``."""
    return before if [*before] == [*after] and all(map(is_, before.values(), after.values())) else after
