"""Estimates the cost of a CEL expression: nested loops over values from clients (pure).

The library does not count steps. An expression of 40 characters over a list of 100,000 items would block the server for
an hour. Kubernetes estimates such costs and stops an expression at ``PerCallLimit``.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

MAX_STEPS = 1_000_000
"""The maximum number of steps of all loops of an expression."""

_TEXT = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
_LOOP = re.compile(r"\.(?:all|exists|exists_one|existsOne|filter|map)\(\s*([A-Za-z_]\w*)\s*,")
_RANGE = re.compile(r"([A-Za-z_]\w*)[\w.\[\]]*$")


class _Loop(NamedTuple):
    """Where a loop ends, its variable, and how many whole collections multiply in it."""

    end: int
    variable: str
    order: int


def exceeds_limit(expression: str, variables: Mapping[str, Any]) -> bool:
    """Whether the expression could take more than ``MAX_STEPS`` steps with these values."""
    order = _order(expression)
    return order > 1 and _size(variables) ** order > MAX_STEPS


@lru_cache(maxsize=1024)
def _order(expression: str) -> int:
    """The number of independent nested loops; a loop over a part of the outer loop's item is not independent."""
    text = _TEXT.sub(lambda found: " " * len(found[0]), expression)
    open_loops: list[_Loop] = []
    highest = 0
    for found in _LOOP.finditer(text):
        open_loops = [loop for loop in open_loops if loop.end > found.start()]
        over = _RANGE.search(text[: found.start()])
        owner = next((loop for loop in reversed(open_loops) if over and loop.variable == over[1]), None)
        around = max((loop.order for loop in open_loops), default=0)
        order = max(owner.order, around) if owner else around + 1
        open_loops.append(_Loop(_end(text, found.start()), found[1], order))
        highest = max(highest, order)
    return highest


def _end(text: str, start: int) -> int:
    """The position after the closing parenthesis that matches the first one after ``start``."""
    depth = 0
    for index in range(text.index("(", start), len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if not depth:
            return index + 1
    return len(text)


def _size(value: Any) -> int:
    """The number of items and fields of a value, on every level."""
    count, rest = 0, [value]
    while rest:
        one = rest.pop()
        inner = one.values() if isinstance(one, Mapping) else one if isinstance(one, list) else ()
        count += len(inner)
        rest += [part for part in inner if isinstance(part, Mapping | list)]
    return count
