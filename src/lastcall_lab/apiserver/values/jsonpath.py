"""Kubernetes' JSONPath (``k8s.io/client-go/util/jsonpath``), for printer columns and scale paths; pure.

Supports names, quoted names, indexes, slices, ``*`` and filters such as ``[?(@.type=="Ready")]``, but no recursive
descent. Missing values are not found, without an error.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Step = Callable[[Any], Iterable[Any]]
"""Maps one value to the values that a path step selects from it."""

_NAME = re.compile(r"\.((?:\\.|[^.\[\]\\])+)")
_QUOTED = re.compile(r"""\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]""")
_INDEX = re.compile(r"\[(-?\d+)\]")
_SLICE = re.compile(r"\[(-?\d*):(-?\d*)\]")
_EVERY = re.compile(r"\[\*\]|\.\*")
_FILTER = re.compile(r"\[\?\(\s*@(.*?)\s*(?:(==|!=|<=|>=|<|>)\s*(.*?)\s*)?\)\]")


class InvalidJsonPath(ValueError):
    """The path is invalid."""


class JsonPath:
    """A compiled path. InvalidJsonPath if it is invalid."""

    def __init__(self, text: str) -> None:
        self._steps = _steps(text)

    def find(self, value: Any) -> list[Any]:
        """All values at the path, in order."""
        found = [value]
        for step in self._steps:
            found = [inner for outer in found for inner in step(outer)]
        return found


def cell_text(value: Any) -> str:
    """A value in a table cell: texts unchanged, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _steps(path: str) -> Sequence[Step]:
    steps: list[Step] = []
    at = 0
    while at < len(path):
        step, at = _step(path, at)
        steps.append(step)
    return steps


def _step(path: str, at: int) -> tuple[Step, int]:
    if found := _EVERY.match(path, at):
        return _every, found.end()
    if found := _NAME.match(path, at):
        return _member(re.sub(r"\\(.)", r"\1", found[1])), found.end()
    if found := _QUOTED.match(path, at):
        return _member(re.sub(r"\\(.)", r"\1", found[1] or found[2] or "")), found.end()
    if found := _INDEX.match(path, at):
        return _item(int(found[1])), found.end()
    if found := _SLICE.match(path, at):
        return _part(slice(*(int(bound) if bound else None for bound in found.groups()))), found.end()
    if found := _FILTER.match(path, at):
        return _filter(JsonPath(found[1]), found[2] or "", found[3] or ""), found.end()
    raise InvalidJsonPath(f"unreadable from {path[at:]!r} on")


def _every(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _member(name: str) -> Step:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else ()


def _item(index: int) -> Step:
    return lambda value: value[index : index + 1 or None] if isinstance(value, list) else ()


def _part(bounds: slice) -> Step:
    return lambda value: value[bounds] if isinstance(value, list) else ()


def _filter(path: JsonPath, operator: str, operand: str) -> Step:
    def chosen(item: Any) -> bool:
        left = path.find(item)
        right = JsonPath(operand[1:]).find(item) if operand.startswith("@") else [_literal(operand)]
        return bool(left) and (not operator or (bool(right) and _compare(left[0], operator, right[0])))

    return lambda value: [item for item in _every(value) if chosen(item)]


def _literal(said: str) -> Any:
    if said[:1] in "'\"" and said[-1:] == said[:1]:
        return said[1:-1]
    try:
        return json.loads(said)
    except ValueError:
        return said


def _compare(left: Any, operator: str, right: Any) -> bool:
    if operator in ("==", "!="):
        return bool(left == right) is (operator == "==")
    if not isinstance(left, int | float | str) or isinstance(left, str) is not isinstance(right, str):
        return False
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator])
