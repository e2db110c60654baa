"""Formats of times, labels and lists in cells."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object

Printer = Callable[[Object, float], Sequence[Any]]
"""Returns the cells of an object's row, at a time in seconds since 1970."""

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 31_536_000


def age_text(obj: Object, now: float) -> str:
    """The time since the object was created."""
    return time_since(obj["metadata"].get("creationTimestamp"), now)


def time_since(timestamp: str | None, now: float) -> str:
    """The time since an API timestamp, with or without fractions of seconds."""
    return duration_text(now - object_meta.parse_seconds(timestamp)) if timestamp else UNKNOWN


def duration_text(seconds: float) -> str:
    """Two or three figures: ``119s``, ``9m59s``, ``3h``, ``7d23h``, ``2y``; as ``duration.HumanDuration``."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    return _two(whole, _YEAR, "y", _DAY, "d") if whole < 8 * _YEAR else f"{whole // _YEAR}y"


def _two(seconds: int, large: int, name: str, small: int, second: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{name}" + (f"{rest}{second}" if rest else "")


def labels_text(pairs: Mapping[str, str] | None) -> str:
    """``a=b,c=d`` (``labels.FormatLabels``)."""
    return ",".join(f"{key}={value}" for key, value in sorted((pairs or {}).items())) or NONE


def selector_text(said: Object | None) -> str:
    """A label selector as a query has it; empty if it selects everything."""
    requirements = [(key, f"{key}={value}") for key, value in ((said or {}).get("matchLabels") or {}).items()]
    requirements += [(one["key"], _requirement(one)) for one in (said or {}).get("matchExpressions") or ()]
    return ",".join(text for _, text in sorted(requirements, key=lambda pair: pair[0]))


def _requirement(said: Object) -> str:
    key, values = str(said["key"]), ",".join(sorted(said.get("values") or ()))
    return {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}.get(
        said["operator"], f"!{key}"
    )


def container_texts(template: Object) -> tuple[str, str]:
    """Names and images of the containers of a pod template."""
    found = (template.get("spec") or {}).get("containers") or ()
    return ",".join(one.get("name", "") for one in found), ",".join(one.get("image", "") for one in found)


def few_values(values: Iterable[str]) -> str:
    """Up to three of them, and the number of the others."""
    found = list(values)
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more


def name_of(obj: Object) -> str:
    """The name; a bookmark has none."""
    name: str = obj["metadata"].get("name", "")
    return name


def spec_of(obj: Object) -> Object:
    """The spec, possibly missing."""
    found: Object = obj.get("spec") or {}
    return found


def template_of(obj: Object) -> Object:
    """The pod template of a workload, possibly missing."""
    found: Object = spec_of(obj).get("template") or {}
    return found


def status_of(obj: Object) -> Object:
    """The status, possibly missing."""
    found: Object = obj.get("status") or {}
    return found


def find_condition(obj: Object, name: str) -> Object | None:
    """The condition of that type."""
    return next((one for one in status_of(obj).get("conditions") or () if one.get("type") == name), None)


def is_true(obj: Object, name: str) -> bool:
    """Whether the condition exists and is True."""
    found = find_condition(obj, name)
    return found is not None and found.get("status") == "True"
