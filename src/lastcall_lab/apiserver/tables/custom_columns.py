"""Custom resources: the printer columns of their definitions (``customresource/tableconvertor``)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.tables.cell_text import name_of, time_since
from lastcall_lab.apiserver.values.jsonpath import InvalidJsonPath, JsonPath, cell_text
from lastcall_lab.apiserver.values.request import Object

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


class _Column(NamedTuple):
    """``path`` is None if it is invalid; its cells are then empty."""

    head: Object
    path: JsonPath | None


def custom_columns(resource: ServedResource, age: str) -> Sequence[Object]:
    """The columns after the name; ``age`` describes the only one of a definition without columns."""
    return [column.head for column in _columns(resource, age)]


def custom_cells(resource: ServedResource, obj: Object, now: float) -> Sequence[Any]:
    """The name and the cells of the columns."""
    return [name_of(obj), *(_cell(column, obj, now) for column in _columns(resource, ""))]


@lru_cache(maxsize=256)
def _columns(resource: ServedResource, age: str) -> Sequence[_Column]:
    said = (resource.definition or {}).get("additionalPrinterColumns") or [{**_AGE, "description": age}]
    return [_Column(_head(one), _path(one["jsonPath"])) for one in said]


def _head(said: Object) -> Object:
    default = f"Custom resource definition column (in JSONPath format): {said['jsonPath']}"
    return {
        "name": said["name"],
        "type": said["type"],
        "format": said.get("format", ""),
        "description": said.get("description") or default,
        "priority": said.get("priority", 0),
    }


def _path(said: str) -> JsonPath | None:
    try:
        return JsonPath(said)
    except InvalidJsonPath:
        return None


def _cell(column: _Column, obj: Object, now: float) -> Any:
    found = column.path.find(obj) if column.path else []
    kind = column.head["type"]
    if not found:
        return None
    value = found[0]
    if kind == "string":
        return cell_text(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in ("integer", "number"):
        return (int(value) if kind == "integer" else float(value)) if number else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    return _date(value, now) if kind == "date" and isinstance(value, str) else None


def _date(value: str, now: float) -> str:
    try:
        return time_since(value, now)
    except ValueError:
        return "<invalid>"
