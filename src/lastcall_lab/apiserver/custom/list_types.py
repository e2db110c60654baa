"""Uniqueness in lists of type set or map (``apiserver/schema/listtype``), pure."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object


def list_violations(value: Any, schema: Object | None, path: str = "") -> Iterator[Cause]:
    """The duplicate items, each reported once."""
    if not schema:
        return
    if isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, inner in value.items():
            if name in properties:
                yield from list_violations(inner, properties[name], f"{path}.{name}" if path else name)
            elif isinstance(others, dict):
                yield from list_violations(inner, others, f"{path}[{name}]")
    elif isinstance(value, list):
        yield from _list(value, schema, path)
        for index, item in enumerate(value):
            yield from list_violations(item, schema.get("items"), f"{path}[{index}]")


def _list(value: Sequence[Any], schema: Object, path: str) -> Iterator[Cause]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        yield from _twice(value, path)
    elif kind == "map":
        wrong = [index for index, item in enumerate(value) if item is not None and not isinstance(item, dict)]
        if wrong:
            why = "must be an object for an array of list-type map"
            yield field_errors.invalid(f"{path}[{wrong[0]}]", value[wrong[0]], why)
            return
        names = schema.get("x-kubernetes-list-map-keys") or ()
        keys = [{name: item[name] for name in names if item and name in item} for item in value]
        yield from _twice(keys, path)


def _twice(values: Sequence[Any], path: str) -> Iterator[Cause]:
    times: dict[str, int] = {}
    for index, value in enumerate(values):
        text = json.dumps(value, sort_keys=True)
        times[text] = times.get(text, 0) + 1
        if times[text] == 2:
            yield field_errors.duplicate(f"{path}[{index}]", value)
