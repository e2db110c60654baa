"""The string and number formats of custom resource schemas (``kube-openapi/pkg/validation/strfmt``)."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

from lastcall.model import name_rules

Check = Callable[[str], bool]

_UUID = r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
_DURATION = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))*|0")
_WORDED = re.compile(
    r"\d+\s*(ns|nanos?|us|micros?|ms|millis?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?|w|weeks?)"
)


def _matches(pattern: str) -> Check:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _reads(function: Callable[[str], Any]) -> Check:
    def can(text: str) -> bool:
        try:
            function(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return can


def _network(text: str) -> None:
    if "/" not in text:
        raise ValueError(text)
    ipaddress.ip_interface(text)


def _instant(text: str) -> None:
    if not re.match(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d", text):
        raise ValueError(text)
    datetime.fromisoformat(text.upper())


_TEXTS: Mapping[str, Check] = {
    "bsonobjectid": _matches(r"(?i)[0-9a-f]{24}"),
    "uri": _matches(r"([a-zA-Z][a-zA-Z0-9+.-]*:|/)\S*"),
    "email": _matches(r"[^@\s<>]+@[^@\s<>]+|.*<[^@\s<>]+@[^@\s<>]+>"),
    "hostname": _matches(
        r"(?=.{1,255}$)([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?\.?"
    ),
    "ipv4": _reads(ipaddress.IPv4Address),
    "ipv6": _reads(ipaddress.IPv6Address),
    "cidr": _reads(_network),
    "mac": _matches(r"(?i)[0-9a-f]{2}([:-])([0-9a-f]{2}\1){4,6}[0-9a-f]{2}|([0-9a-f]{4}\.){2,3}[0-9a-f]{4}"),
    "uuid": _matches(_UUID % ("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _matches(_UUID % ("3", "[0-9a-f]")),
    "uuid4": _matches(_UUID % ("4", "[89ab]")),
    "uuid5": _matches(_UUID % ("5", "[89ab]")),
    "isbn": _matches(r"(\d[- ]?){9}[\dX]|(\d[- ]?){13}"),
    "isbn10": _matches(r"(\d[- ]?){9}[\dX]"),
    "isbn13": _matches(r"(\d[- ]?){13}"),
    "creditcard": _matches(r"(\d[- ]?){13,19}"),
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(r"rgb\(\s*(\d{1,3}%?\s*,\s*){2}\d{1,3}%?\s*\)"),
    "byte": _reads(lambda text: base64.b64decode(text, validate=True)),
    "password": lambda text: True,
    "date": _reads(date.fromisoformat),
    "duration": lambda text: bool(_DURATION.fullmatch(text) or _WORDED.fullmatch(text)),
    "datetime": _reads(_instant),
    "k8sshortname": lambda text: not name_rules.dns_label_error(text),
    "k8slongname": lambda text: not name_rules.subdomain_error(text),
}

_NUMBERS: Mapping[str, tuple[str, ...]] = {"integer": ("int32", "int64"), "number": ("float", "double")}


def is_known(said: str, kind: str) -> bool:
    """Whether the format applies to type ``kind``; unknown formats are not checked."""
    if kind in _NUMBERS:
        return said in _NUMBERS[kind]
    return kind in ("", "string") and said.replace("-", "") in _TEXTS


def has_format(text: str, said: str) -> bool:
    """Whether a text has the format; true for unknown formats."""
    check = _TEXTS.get(said.replace("-", ""))
    return check is None or check(text)
