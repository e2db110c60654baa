"""Scalars with their own unmarshaller in Go: numbers, quantities, times, bytes; pure."""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any

from lastcall.model import quantities
from lastcall_lab.apiserver.encoding import go_json

_LIMITS = {"int32": 1 << 31, "int64": 1 << 63}
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)")
_LAYOUTS = {"time": "2006-01-02T15:04:05Z07:00", "microtime": "2006-01-02T15:04:05.000000Z07:00"}
_STEPS = ("2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05")


class ScalarRefused(ValueError):
    """A type's own unmarshaller rejects the value, which ends the decoding."""


class IllegalScalar(ValueError):
    """The value is invalid for the type, and the decoding continues."""


class ScalarTypeMismatch(ValueError):
    """The value has another JSON type; ``go`` is the Go type in the message, empty for the field's own."""

    def __init__(self, said: str, go: str = "") -> None:
        super().__init__(said, go)
        self.said, self.go = said, go


def _quantity(value: Any) -> str:
    """The canonical form; a quantity may also be a number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ScalarRefused(quantities.RULE)
    try:
        return quantities.canonical_quantity(value.strip() if isinstance(value, str) else repr(value))
    except ValueError as error:
        raise ScalarRefused(str(error)) from None


def _int_or_string(value: Any) -> int | str:
    return value if isinstance(value, str) else _integer("int32", value, go="int32")


def _integer(kind: str, value: Any, *, go: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScalarTypeMismatch(go_json.json_type_name(value), go)
    limit = _LIMITS[kind]
    if not isinstance(value, int) or not -limit <= value < limit:
        raise ScalarTypeMismatch(f"number {value}", go)
    return value


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScalarTypeMismatch(go_json.json_type_name(value))
    return value


def _raw(value: Any) -> Any:
    return value


def _octets(value: Any) -> str:
    if not isinstance(value, str):
        raise ScalarTypeMismatch(go_json.json_type_name(value))
    text = value.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        bad = re.search(r"[^A-Za-z0-9+/=\r\n]", value)
        raise IllegalScalar(
            f"illegal base64 data at input byte {bad.start() if bad else len(value) // 4 * 4}"
        ) from None
    return text


def _time(kind: str, value: Any) -> str:
    """In UTC, with the precision of the type."""
    if not isinstance(value, str):
        raise ScalarTypeMismatch(go_json.json_type_name(value), "string")
    return _moment(kind, value)


@lru_cache(maxsize=1024)  # cached: many objects contain the same second
def _moment(kind: str, value: str) -> str:
    found = _RFC3339.fullmatch(value)
    if not found or (kind == "microtime" and len(found[3] or "") != 6):
        raise ScalarRefused(_time_fault(value, kind))
    date, clock, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{date}T{clock}{'+00:00' if zone == 'Z' else zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise ScalarRefused(_range_fault(value)) from None
    seconds = moment.replace(tzinfo=None).isoformat()
    return f"{seconds}.{fraction}Z" if kind == "microtime" else f"{seconds}Z"


READERS: Mapping[str, Callable[[Any], Any]] = {
    "int32": partial(_integer, "int32"),
    "int64": partial(_integer, "int64"),
    "float64": _float,
    "quantity": _quantity,
    "intorstring": _int_or_string,
    "time": partial(_time, "time"),
    "microtime": partial(_time, "microtime"),
    "bytes": _octets,
    "raw": _raw,
    "any": _raw,
    "object": _raw,
}
"""By the kind of a node. They raise Fault, Illegal or Mismatch."""


def _time_fault(value: str, kind: str) -> str:
    rest, step = _unread(value, kind)
    if not step:
        return f'parsing time "{value}": extra text: "{rest}"'
    return f'parsing time "{value}" as "{_LAYOUTS[kind]}": cannot parse "{rest}" as "{step}"'


def _unread(value: str, kind: str) -> tuple[str, str]:
    """The remaining text where Go stops parsing and the element that it expects there; empty on success."""
    rest = value
    for step in _STEPS:
        found = re.match(rf"\d{{{len(step)}}}" if step.isdigit() else re.escape(step), rest)
        if not found:
            return rest, step
        rest = rest[found.end() :]
    if kind == "microtime" and not re.match(r"[.,]\d{6}(?!\d)", rest):
        return rest, ".000000"
    rest = re.sub(r"^[.,]\d+", "", rest)
    zone = re.match(r"Z|[+-]\d\d:\d\d", rest)
    return (rest[zone.end() :], "") if zone else (rest, "Z07:00")


def _range_fault(value: str) -> str:
    """The out-of-range part of a well-formed time."""
    ranges = {"month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59), "second": (0, 59)}
    parts = zip(ranges.items(), re.findall(r"\d+", value)[1:6], strict=True)
    wrong = next((name for (name, (low, high)), part in parts if not low <= int(part) <= high), "day")
    return f'parsing time "{value}": {wrong} out of range'
