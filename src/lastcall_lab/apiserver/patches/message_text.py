"""A patched object in an error message: the text of ``encoding/json`` and ``evanphx/json-patch`` (pure).

Parts that a patch has touched are sorted by name; the rest has the order of Go's fields.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


def go_json(value: Any) -> str:
    """JSON as Go encodes it."""
    said = msgspec.json.encode(value).decode()
    return said.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def sort_touched(value: Any, patch: Any) -> Any:
    """The value, sorted wherever a merge patch or the paths of a JSON patch lead."""
    if isinstance(patch, list) and all(isinstance(operation, dict) for operation in patch):
        paths = [str(operation.get(name, "")) for operation in patch for name in ("path", "from")]
        for path in paths or [""]:
            value = _along(value, path.split("/")[1:-1])
        return value
    if not isinstance(value, dict):
        return value
    inner: Mapping[str, Any] = patch if isinstance(patch, dict) else {}
    return {name: sort_touched(one, inner[name]) if name in inner else one for name, one in sorted(value.items())}


def _along(value: Any, path: Sequence[str]) -> Any:
    if isinstance(value, list):
        at = int(path[0]) if path and path[0].isdigit() else -1
        return [_along(one, path[1:]) if index == at else one for index, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    step = path[0].replace("~1", "/").replace("~0", "~") if path else None
    return {name: _along(one, path[1:]) if name == step else one for name, one in sorted(value.items())}
