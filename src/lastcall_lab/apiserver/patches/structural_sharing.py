"""What a patch leaves as it was is the very same object afterwards (pure).

So nobody has to look for changes in it: comparisons end there, and it is not read again (``schema/plain.py``). It belongs
to the old object and to the new one, and is not to be changed in place.
"""

from collections.abc import Callable
from operator import is_
from typing import Any

import msgspec

from lastcall_lab.apiserver.values.request import Object

_ENCODER = msgspec.json.Encoder()
_GONE: Any = object()


def share_items(before: list[Any], after: list[Any], made: Callable[[Any], Any]) -> list[Any]:
    """The items of ``after``: those of ``before`` where they are the same JSON, and what is ``made`` of the others."""
    known = {_ENCODER.encode(one): one for one in before}
    found = [(known.get(_ENCODER.encode(one), _GONE), one) for one in after]
    return share_list(before, [made(one) if there is _GONE else there for there, one in found])


def share_list(before: list[Any], after: list[Any]) -> list[Any]:
    """``after``, or ``before`` if it has the very same items."""
    return before if len(before) == len(after) and all(map(is_, before, after)) else after


def share_map(before: Object, after: Object) -> Object:
    """``after``, or ``before`` if it has the very same values in the same order."""
    return before if [*before] == [*after] and all(map(is_, before.values(), after.values())) else after
