"""systemd's time spans in its configuration files (systemd.time(7)): ``30``, ``1h 2min``, ``infinity``.

As in systemd's parse_time(): parts are added, a number without a unit is in seconds, fractions are allowed, and a month
and a year have 30.4375 and 365.25 days.
"""

import math
import re

_SECONDS: dict[str, float] = {}
for _names, _size in (
    ("us usec µs μs", 1e-6),  # both the micro sign and the Greek letter
    ("ms msec", 1e-3),
    ("s sec second seconds", 1.0),
    ("m min minute minutes", 60.0),
    ("h hr hour hours", 3600.0),
    ("d day days", 86_400.0),
    ("w week weeks", 604_800.0),
    ("M month months", 2_629_800.0),
    ("y year years", 31_557_600.0),
):
    _SECONDS.update(dict.fromkeys(_names.split(), _size))

_UNIT = "|".join(sorted(_SECONDS, key=len, reverse=True))
_PART = re.compile(rf"\s*(\d+(?:\.\d*)?|\.\d+)\s*({_UNIT}|)", re.ASCII)
_MAX_SECONDS = (2**64 - 1) / 1e6
"""systemd counts in microseconds; the largest number means infinity."""


def parse(text: str) -> float:
    """Seconds, ``inf`` for ``infinity``. ValueError explains the error."""
    rest = text.strip()
    if rest == "infinity":
        return math.inf
    if not rest:
        raise ValueError("a time span is missing")
    total = 0.0
    while rest:
        match = _PART.match(rest)
        if not match:
            raise ValueError(f"{text!r} is not a time span such as 90, 1min 30s or infinity")
        total += float(match[1]) * _SECONDS[match[2] or "s"]
        rest = rest[match.end() :].strip()
    if total >= _MAX_SECONDS:
        raise ValueError(f"{text!r} is longer than systemd can count")
    return total


def format_timespan(seconds: float) -> str:
    """For people: ``infinity``, ``45 s``, ``0.5 s``."""
    return "infinity" if math.isinf(seconds) else f"{seconds:.10g} s"
