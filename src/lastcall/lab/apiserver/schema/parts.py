"""The part of an object that a merge patch speaks of: all else was read when it was stored (pure).

Most patches are of a status, and most of an object is not: to read the rest again would take most of their time.
"""

from collections.abc import Mapping
from typing import Any

from lastcall.lab.apiserver.request import Object


def narrowed(obj: Object, patch: Mapping[str, Any]) -> Object:
    """What has been merged into ``obj``: ``patch`` may be strategic. The object itself if a directive says more."""
    if any(name.startswith("$") for name in patch):
        return obj
    return {name: _narrowed(obj[name], said) for name, said in patch.items() if name in obj}


def _narrowed(value: Any, said: Any) -> Any:
    """A map is taken apart only if something is in it whatever becomes of the part: an empty one may be left out."""
    if isinstance(value, dict) and isinstance(said, dict) and not value.keys() <= said.keys():
        return narrowed(value, said)
    return value


def widened(obj: Object, part: Object, read: Object) -> Object:
    """The object with what has been read of the part, which is as ``narrowed`` has made it.

    What was removed, but is written though it is empty, is in ``read`` alone.
    """
    result = {name: value for name, value in obj.items() if name not in part}
    result |= {name: value for name, value in read.items() if name in part or name not in obj}
    for name, value in part.items():
        if value is not obj[name]:
            result[name] = widened(obj[name], value, read.get(name) or {})
    return result
