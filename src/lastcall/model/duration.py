"""Go's duration syntax, which every Kubernetes configuration file uses, to the nanosecond.

A duration is an int of nanoseconds. Parsing, printing and the words of the errors are those of Go's
``time.ParseDuration`` and ``Duration.String``, since the kubelet's own messages quote them. (durationpy keeps
microseconds and has other words.)
"""

import re

NANOSECOND = 1
SECOND = 1_000_000_000
MAX = 2**63 - 1
"""The largest duration that Go can hold, some 292 years."""

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, micro sign
    "μs": 1_000,  # U+03BC, Greek letter mu
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")


def parse(text: str) -> int:
    """Nanoseconds of a Go duration such as ``1h15m``, ``1.5s`` or ``-300ms``; ValueError with Go's own words."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise ValueError(f'time: invalid duration "{text}"')
    total = 0
    while rest:
        match = _PART.match(rest)
        if match is None or not (match[1] or match[2]):
            raise ValueError(f'time: invalid duration "{text}"')
        if not match[3]:
            raise ValueError(f'time: missing unit in duration "{text}"')
        if match[3] not in _UNITS:
            raise ValueError(f'time: unknown unit "{match[3]}" in duration "{text}"')
        unit = _UNITS[match[3]]
        total += int(match[1] or 0) * unit
        if match[2]:
            total += int(match[2]) * unit // 10 ** len(match[2])
        rest = rest[match.end() :]
    if total > MAX + (text[0] == "-"):
        raise ValueError(f'time: invalid duration "{text}"')
    return -total if text[0] == "-" else total


def text(nanoseconds: int) -> str:
    """As Go prints it: ``1h15m0s``, ``1.5s``, ``300ms``, ``0s``."""
    if nanoseconds == 0:
        return "0s"
    sign, value = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if value < SECOND:
        unit, size = next((u, _UNITS[u]) for u in ("ms", "µs", "ns") if value >= _UNITS[u])
        return f"{sign}{_decimal(value, size)}{unit}"
    hours, value = divmod(value, 3600 * SECOND)
    minutes, value = divmod(value, 60 * SECOND)
    head = f"{hours}h" if hours else ""
    if hours or minutes:
        head += f"{minutes}m"
    return f"{sign}{head}{_decimal(value, SECOND)}s"


def of_seconds(seconds: float) -> str:
    """Seconds for people, to the millisecond: ``30s``, ``1m30s``, ``250ms``."""
    return text(round(seconds * 1000) * 1_000_000)


def _decimal(value: int, size: int) -> str:
    whole, fraction = divmod(value, size)
    if not fraction:
        return str(whole)
    digits = len(str(size)) - 1
    return f"{whole}.{fraction:0{digits}d}".rstrip("0")
