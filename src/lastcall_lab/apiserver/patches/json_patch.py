"""JSON patches (RFC 6902) with the deviations of ``evanphx/json-patch`` version 4, which Kubernetes uses (pure).

It is laxer than the standard, and clients rely on that: ``replace`` of a missing field adds it, and negative indexes
count from the end.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from lastcall_lab.apiserver.encoding.go_json import is_deep

Document = dict[str, Any] | list[Any]

MAX_OPERATIONS = 10_000
"""The maximum number of operations in a patch (``maxJSONPatchOperations``)."""

MAX_COPIED_BYTES = 3 * 1024 * 1024
"""JSON that all ``copy`` operations of a patch may add together (``JSONPatchMaxCopyBytes``): copies of copies double."""

_TOO_DEEP = "exceeded max depth"
_INDEX = re.compile(r"[+-]?[0-9]{1,18}")


class JsonPatchDoesNotApply(Exception):
    """An operation fails on this document; the text says which one and why."""


def apply_operations(document: Document, operations: Sequence[Mapping[str, Any]]) -> Document:
    """The document after all operations, changed in place.

    JsonPatchDoesNotApply if an operation fails, or if the result is too deep.
    """
    try:
        document = _apply_all(document, operations)
    except RecursionError:
        raise JsonPatchDoesNotApply(_TOO_DEEP) from None
    if is_deep(document):
        raise JsonPatchDoesNotApply(_TOO_DEEP)
    return document


def _apply_all(document: Document, operations: Sequence[Mapping[str, Any]]) -> Document:
    appliers = {**_OPERATIONS, "copy": _Copier().copy}
    for operation in operations:
        kind = operation.get("op")
        apply = appliers.get(kind) if isinstance(kind, str) else None
        if apply is None:
            raise JsonPatchDoesNotApply(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        document = apply(document, operation)
    return document


def _add(document: Document, operation: Mapping[str, Any]) -> Document:
    path = _pointer(operation, "path")
    parent, key = _parent(document, path)
    _insert(parent, key, operation.get("value"))
    return document


def _remove(document: Document, operation: Mapping[str, Any]) -> Document:
    path = _pointer(operation, "path")
    parent, key = _parent(document, path)
    try:
        _take(parent, key)
    except JsonPatchDoesNotApply as error:
        raise JsonPatchDoesNotApply(f"error in remove for path: '{path}': {error}") from None
    return document


def _replace(document: Document, operation: Mapping[str, Any]) -> Document:
    path, value = _pointer(operation, "path"), operation.get("value")
    if not path:
        if not isinstance(value, dict | list):
            raise JsonPatchDoesNotApply("replace operation value must be object or array")
        return value
    parent, key = _parent(document, path)
    if isinstance(parent, dict):
        parent[key] = value
    else:
        parent[_index(parent, key)] = value
    return document


def _move(document: Document, operation: Mapping[str, Any]) -> Document:
    parent, key = _parent(document, _pointer(operation, "from"))
    value = _find_member(parent, key)
    _take(parent, key)
    _insert(*_parent(document, _pointer(operation, "path")), value)
    return document


class _Copier:
    """Applies the ``copy`` operations of a patch, and limits the total size that they add."""

    def __init__(self) -> None:
        self._bytes = 0

    def copy(self, document: Document, operation: Mapping[str, Any]) -> Document:
        encoded = msgspec.json.encode(_find_member(*_parent(document, _pointer(operation, "from"))))
        parent, key = _parent(document, _pointer(operation, "path"))
        self._bytes += len(encoded)
        if self._bytes > MAX_COPIED_BYTES:
            raise JsonPatchDoesNotApply(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._bytes},"
                f" exceeding the limit {MAX_COPIED_BYTES}"
            )
        _insert(parent, key, msgspec.json.decode(encoded))
        return document


def _test(document: Document, operation: Mapping[str, Any]) -> Document:
    path, wanted = _pointer(operation, "path"), operation.get("value")
    found = _find_member(*_parent(document, path)) if path else document
    if not _same(found, wanted):
        raise JsonPatchDoesNotApply(f"testing value {path} failed: test failed")
    return document


_OPERATIONS: Mapping[str, Callable[[Document, Mapping[str, Any]], Document]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "test": _test,
}


def _pointer(operation: Mapping[str, Any], name: str) -> str:
    value = operation.get(name)
    if not isinstance(value, str):
        raise JsonPatchDoesNotApply(f"operation missing {name} field: missing value")
    return value


def _parent(document: Document, path: str) -> tuple[Document, str]:
    """The container of the path's last key, and that key (RFC 6901)."""
    parts = path.split("/")
    if len(parts) < 2:
        raise JsonPatchDoesNotApply(f'doc is missing path: "{path}": missing value')
    here: Any = document
    for part in parts[1:-1]:
        here = _find_member(here, _decode_pointer_part(part), path)
        if not isinstance(here, dict | list):
            raise JsonPatchDoesNotApply(f'doc is missing path: "{path}": missing value')
    return here, _decode_pointer_part(parts[-1])


def _decode_pointer_part(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _find_member(container: Document, key: str, path: str = "") -> Any:
    """The value at the key; None if an object does not have it."""
    return container.get(key) if isinstance(container, dict) else container[_index(container, key)]


def _take(container: Document, key: str) -> None:
    if isinstance(container, list):
        del container[_index(container, key)]
    elif key in container:
        del container[key]
    else:
        raise JsonPatchDoesNotApply(f"Unable to remove nonexistent key: {key}: missing value")


def _insert(container: Document, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(container, key, more=1), value)


def _index(container: list[Any], key: str, *, more: int = 0) -> int:
    """An index of the list, or with ``more`` also its end; negative ones count from the end."""
    size = len(container) + more
    if not _INDEX.fullmatch(key):
        raise JsonPatchDoesNotApply(f"value was not a proper array index: '{key}'")
    index = int(key)
    if not -size <= index < size:
        raise JsonPatchDoesNotApply(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % size


def _same(one: Any, other: Any) -> bool:
    """JSON equality: 1 differs from true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return one == other and isinstance(one, bool) == isinstance(other, bool)
