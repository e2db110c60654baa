"""Label selectors: requirements on labels, from wherever they come (pure; ``labels.Requirement.Matches``)."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Matcher = Callable[[Mapping[str, str]], bool]
"""Whether labels are selected."""

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
"""Those of ``matchExpressions``; the query language of lists has ``Gt`` and ``Lt`` besides."""

_INTEGER = re.compile(r"[+-]?0*[0-9]{1,19}")


class Requirement(NamedTuple):
    """What one key must be like. ``=`` and ``!=`` are In and NotIn with one value."""

    key: str
    operator: str
    values: Sequence[str] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet it. What is not there is in no set, and greater or less than nothing."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        wanted, found = parse_integer(self.values[0]), parse_integer(value or "")
        if wanted is None or found is None:
            return False
        return found > wanted if self.operator == "Gt" else found < wanted


def parse_integer(text: str) -> int | None:
    """The number as Go's ``strconv.ParseInt`` reads it (64 bits); None if it is none."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def select_everything(_: Mapping[str, str]) -> bool:
    """Selects all."""
    return True


def select_nothing(_: Mapping[str, str]) -> bool:
    """Selects none."""
    return False


def build_matcher(requirements: Iterable[Requirement]) -> Matcher:
    """All of them must be met; without any, everything is selected."""
    wanted = tuple(requirements)
    if not wanted:
        return select_everything
    if len(wanted) == 1:
        return wanted[0].matches
    return lambda labels: all(one.matches(labels) for one in wanted)


def requirements_of(selector: Mapping[str, Any]) -> list[Requirement]:
    """Those of a ``meta/v1 LabelSelector``: ``matchLabels`` and ``matchExpressions``.

    ValueError, in the words of ``metav1.LabelSelectorAsSelector``, for an operator that does not exist.
    """
    found = [Requirement(key, "In", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator = expression.get("operator", "")
        if operator not in OPERATORS:
            raise ValueError(f'"{operator}" is not a valid label selector operator')
        found.append(Requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
    return found


def selector_matcher(selector: Mapping[str, Any] | None) -> Matcher:
    """What a ``meta/v1 LabelSelector`` selects: None nothing, an empty one everything.

    ValueError for an operator that does not exist.
    """
    return select_nothing if selector is None else build_matcher(requirements_of(selector))
