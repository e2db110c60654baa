"""Tables of fields: from what YAML gives to the arguments of a struct, with every violation told (pure).

A reader takes a value and returns what it means; ValueError says the rule that it breaks.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from lastcall.model import duration, quantities
from lastcall.model.decoding import quote_value

Reader = Callable[[Any], Any]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_RATE = re.compile(r"(\d+(?:\.\d+)?)/(s|m|h)")
_PER = {"s": 1, "m": 60, "h": 3600}


class FieldRule(NamedTuple):
    """Where a value goes, how it is read, and what it is, for those who look it up."""

    attribute: str
    read: Reader
    about: str


Table = Mapping[str, FieldRule]


class FieldViolations:
    """What is wrong, as ``field: value: rule``."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, at: str, value: Any, rule: str) -> None:
        """One more."""
        self.found.append(f"{at}: {quote_value(value)}: {rule}")

    def read_value(self, at: str, value: Any, reader: Reader) -> Any:
        """What ``value`` means, or None after a violation."""
        try:
            return reader(value)
        except ValueError as error:
            self.add(at, value, str(error))
            return None

    def read_fields(self, at: str, value: Any, table: Table) -> dict[str, Any]:
        """The arguments that are right; null counts as absent."""
        if not isinstance(value, dict):
            self.add(at or "document", value, f"must be a mapping of {', '.join(table)}")
            return {}
        self.found += _unknown_fields(at, value, list(table))
        arguments = {}
        for name, field in table.items():
            if value.get(name) is not None:
                meant = self.read_value(f"{at}.{name}".lstrip("."), value[name], field.read)
                if meant is not None:
                    arguments[field.attribute] = meant
        return arguments


def _unknown_fields(at: str, value: Mapping[str, Any], known: Sequence[str]) -> Iterator[str]:
    for name in value:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
            yield f"{f'{at}.{name}'.lstrip('.')}: {quote_value(value[name])}: unknown field, {hint}"


# -- readers -----------------------------------------------------------------------------------------------------------


def read_text(value: Any) -> str:
    """Any text."""
    _require(isinstance(value, str), "must be text")
    return str(value)


def read_name(value: Any) -> str:
    """Of an object of the Kubernetes API (RFC 1123 label)."""
    if not isinstance(value, str) or len(value) > 63 or not _NAME.fullmatch(value):
        raise ValueError("must be a name: at most 63 lower-case letters, digits and hyphens")
    return value


def read_flag(value: Any) -> bool:
    """True or false."""
    _require(isinstance(value, bool), "must be true or false")
    return bool(value)


def integer_reader(least: int, most: int) -> Reader:
    """An integer between the two."""

    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return value

    return read


def read_seconds(value: Any) -> float:
    """A Go duration of zero or more."""
    if not isinstance(value, str) and value != 0:
        raise ValueError('must be a duration as text, such as "30s"')
    nanoseconds = duration.parse(str(value))
    if nanoseconds < 0:
        raise ValueError("must not be negative")
    return nanoseconds / duration.SECOND


def seconds_or_word(word: str) -> Reader:
    """The same, or a word for "for ever"."""
    return lambda value: float("inf") if value == word else read_seconds(value)


def read_rate(value: Any) -> float:
    """How often: ``20/s``, ``6/m``."""
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError('must be a rate such as "20/s" or "6/m"')
    return float(match[1]) / _PER[match[2]]


def read_portion(value: Any) -> str:
    """A number of pods, or a percentage of them, as budgets have it."""
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if not good and not (isinstance(value, str) and re.fullmatch(r"\d{1,9}%", value)):
        raise ValueError('must be a whole number of pods, or a percentage such as "50%"')
    return str(value)


def read_quantity(value: Any) -> str:
    """Of a resource: ``100m``, ``2``, ``64Mi``."""
    try:
        quantities.parse_quantity(str(value))
    except ValueError as error:
        raise ValueError('must be a quantity such as "100m" or "64Mi"') from error
    return str(value)


def mapping_reader(reader: Reader) -> Reader:
    """A mapping whose values are all alike."""

    def read(value: Any) -> dict[str, Any]:
        _require(isinstance(value, dict), "must be a mapping")
        return {key: _read_part(key, one, reader) for key, one in value.items()}

    return read


def list_reader(reader: Reader) -> Reader:
    """A list that is not empty, whose items are all alike."""

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise ValueError("must be a list that is not empty")
        return tuple(_read_part(str(index), one, reader) for index, one in enumerate(value))

    return read


def _require(good: bool, rule: str) -> None:
    if not good:
        raise ValueError(rule)


def _read_part(where: str, value: Any, reader: Reader) -> Any:
    try:
        return reader(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
