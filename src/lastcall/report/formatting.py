"""How a report formats times, durations and names (pure)."""

from collections.abc import Sequence
from datetime import UTC, datetime

from lastcall.model import duration
from lastcall.model.shutdown import PhaseEnd, PodOutcome

PHASE_ENDS = {
    PhaseEnd.DONE: "all pods ended",
    PhaseEnd.EMPTY: "no pods",
    PhaseEnd.RAN_OUT: "ran out of time",
    PhaseEnd.CANCELLED: "cancelled",
}
POD_OUTCOMES = {
    PodOutcome.GRACEFUL: "graceful",
    PodOutcome.KILLED: "killed",
    PodOutcome.UNCONFIRMED: "unconfirmed",
    PodOutcome.OBSERVED: "observed",
    None: "not ended",
}

_SHOWN = 3
"""The most names in one line."""


def format_duration(seconds: float) -> str:
    """A duration for people: ``12ms``, ``3.4s``, ``1m30s``, ``2h``."""
    return format_exact_duration(round(seconds, 3 if abs(seconds) < 1 else 1 if abs(seconds) < 100 else 0))


def format_exact_duration(seconds: float) -> str:
    """A duration to the nanosecond, in the same short form; ``model.duration`` parses it."""
    text = duration.format_duration(round(seconds * duration.SECOND))
    if text.endswith("m0s"):
        text = text[:-2]
    return text[:-2] if text.endswith("h0m") else text


def format_utc(wall: float) -> str:
    """Seconds since 1970 as a date and time in UTC, to the second."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def count_text(number: int, noun: str) -> str:
    """``1 pod``, ``2 pods``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def abbreviate_names(names: Sequence[str]) -> str:
    """``a, b, c``; for many names the first two and the number of the others."""
    if len(names) > _SHOWN:
        return f"{', '.join(names[: _SHOWN - 1])} and {len(names) - _SHOWN + 1} more"
    return ", ".join(names)


def format_age(seconds: float) -> str:
    """An age as kubectl prints it, with at most two units: ``45s``, ``7m30s``, ``3h``, ``2d5h``, ``400d``.

    The rule is HumanDuration of apimachinery/pkg/util/duration, without years.
    """
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two_units(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    return _two_units(days, "d", hours % 24, "h") if days < 8 else f"{days}d"


def _two_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}" + (f"{small}{small_unit}" if small else "")
