"""Label selectors: requirements on labels, from any source (pure; ``labels.Requirement.Matches``)."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Matcher = Callable[[Mapping[str, str]], bool]
"""Whether the selector matches the labels."""

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
"""The operators of ``matchExpressions``; the query language of lists also has ``Gt`` and ``Lt``."""

_INTEGER = re.compile(r"[+-]?0*[0-9]{1,19}")


class Requirement(NamedTuple):
    """A requirement on one key. ``=`` and ``!=`` are In and NotIn with one value."""

    key: str
    operator: str
    values: Sequence[str] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet it. A missing label is in no set, and neither greater nor less than any value."""
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
    """The integer as Go's ``strconv.ParseInt`` parses it (64 bits); None if the text is not one."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def select_everything(_: Mapping[str, str]) -> bool:
    """Selects all."""
    return True


def select_nothing(_: Mapping[str, str]) -> bool:
    """Selects none."""
    return False


def build_matcher(requirements: Iterable[Requirement]) -> Matcher:
    """A matcher that needs all requirements; without any it matches everything."""
    wanted = tuple(requirements)
    if not wanted:
        return select_everything
    if len(wanted) == 1:
        return wanted[0].matches
    return lambda labels: all(one.matches(labels) for one in wanted)


def requirements_of(selector: Mapping[str, Any]) -> list[Requirement]:
    """The requirements of a ``meta/v1 LabelSelector``: ``matchLabels`` and ``matchExpressions``.

    ValueError, in the words of ``metav1.LabelSelectorAsSelector``, for an unknown operator.
    """
    found = [Requirement(key, "In", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator = expression.get("operator", "")
        if operator not in OPERATORS:
            raise ValueError(f'"{operator}" is not a valid label selector operator')
        found.append(Requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
    return found


def selector_matcher(selector: Mapping[str, Any] | None) -> Matcher:
    """The matcher of a ``meta/v1 LabelSelector``: None matches nothing, an empty selector everything.

    ValueError for an unknown operator.
    """
    return select_nothing if selector is None else build_matcher(requirements_of(selector))
