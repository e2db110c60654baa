"""Go's duration syntax, which every Kubernetes configuration file uses, to the nanosecond.

A duration is an int of nanoseconds. Parsing, formatting and error messages are those of Go's ``time.ParseDuration`` and
``Duration.String``, because the kubelet's own messages quote them. (The package durationpy has microseconds only, and
other messages.)
"""

import re

SECOND = 1_000_000_000
MAX = 2**63 - 1
"""The largest duration that Go can represent, about 292 years."""

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
_LARGEST = 2**63  # without its sign: the most negative duration is one larger than the most positive


def parse(text: str) -> int:
    """Nanoseconds of a Go duration such as ``1h15m``, ``1.5s`` or ``-300ms``; ValueError with Go's own words."""
    negative = text[:1] == "-"
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest):
        match = _PART.match(rest, at)
        assert match is not None
        total += _parse_part(match, text)
        if total > _LARGEST:
            raise _invalid_duration(text)
        at = match.end()
    if not rest or total > _LARGEST - (not negative):
        raise _invalid_duration(text)
    return -total if negative else total


def format_duration(nanoseconds: int) -> str:
    """As Go prints it: ``1h15m0s``, ``1.5s``, ``300ms``, ``0s``."""
    if nanoseconds == 0:
        return "0s"
    sign, value = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if value < SECOND:
        unit, size = next((u, _UNITS[u]) for u in ("ms", "µs", "ns") if value >= _UNITS[u])
        return f"{sign}{_format_decimal(value, size)}{unit}"
    hours, value = divmod(value, 3600 * SECOND)
    minutes, value = divmod(value, 60 * SECOND)
    head = f"{hours}h" if hours else ""
    if hours or minutes:
        head += f"{minutes}m"
    return f"{sign}{head}{_format_decimal(value, SECOND)}s"


def format_seconds(seconds: float) -> str:
    """Seconds for people, to the millisecond: ``30s``, ``1m30s``, ``250ms``."""
    return format_duration(round(seconds * 1000) * 1_000_000)


def format_elapsed(seconds: float) -> str:
    """Elapsed time for people, at least zero: ``1h59m59s``, ``30s``, ``0s``, below a second ``250ms``.

    Rounds down to whole seconds, as kubectl does for ages: 39.9 s ago is not shown as 40 s.
    """
    milliseconds = max(0, round(seconds * 1000))
    exactly = milliseconds if milliseconds < 1000 else milliseconds // 1000 * 1000
    return format_duration(exactly * 1_000_000)


def _format_decimal(value: int, size: int) -> str:
    whole, fraction = divmod(value, size)
    if not fraction:
        return str(whole)
    digits = len(str(size)) - 1
    return f"{whole}.{fraction:0{digits}d}".rstrip("0")


def _parse_part(match: re.Match[str], text: str) -> int:
    """A number with its unit, in nanoseconds. The checks run in Go's order: the first failure determines the error."""
    whole, fraction, unit = match.groups()
    digits = whole.lstrip("0")
    if not (whole or fraction) or len(digits) > 19 or int(digits or 0) > _LARGEST:
        raise _invalid_duration(text)
    if not unit:
        raise ValueError(f"time: missing unit in duration {_quote_text(text)}")
    if unit not in _UNITS:
        raise ValueError(f"time: unknown unit {_quote_text(unit)} in duration {_quote_text(text)}")
    return int(digits or 0) * _UNITS[unit] + _parse_fraction(fraction or "", _UNITS[unit])


def _parse_fraction(digits: str, unit: int) -> int:
    """In floating point as in Go: 0.3333333333333333333h is 20 minutes. Digits beyond 63 bits are dropped."""
    number, scale = 0, 1.0
    for digit in digits:
        if number > (_LARGEST - 1) // 10 or number * 10 + int(digit) > _LARGEST:
            break
        number, scale = number * 10 + int(digit), scale * 10
    return int(number * (unit / scale))


def _invalid_duration(text: str) -> ValueError:
    return ValueError(f"time: invalid duration {_quote_text(text)}")


def _quote_text(text: str) -> str:
    """The text in quotes, with the UTF-8 bytes of every character that is not printable ASCII."""
    return '"' + "".join(_escape_character(character) for character in text) + '"'


def _escape_character(character: str) -> str:
    if character < " " or character >= "\x80":
        return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
    return f"\\{character}" if character in '"\\' else character
