"""Validation rules that several kinds share, in Kubernetes' words, and helpers for defaults."""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from lastcall_lab.apiserver.values import field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for"
    " validation is '[0-9]+%')"
)
_PODS = ipaddress.ip_network("127.64.0.0/10")
"""The networks of pods that are processes of this machine (``lastcall_lab/processes/pod_addresses.py``)."""

_LINK_LOCAL_MULTICAST = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}
NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


def fill_missing(target: Object, **values: Any) -> Object:
    """Sets missing or null fields of ``target`` to these values."""
    for name, value in values.items():
        if target.get(name) is None:
            target[name] = value
    return target


def sub_object(target: Object, name: str) -> Object:
    """The object under ``name``; creates it if absent."""
    found = target.get(name)
    if not isinstance(found, dict):
        found = target[name] = {}
    return found


def check_not_negative(target: Mapping[str, Any], path: str, *keys: str) -> Iterator[Cause]:
    """The present numbers must not be negative."""
    for key in keys:
        value = target.get(key)
        if value is not None and value < 0:
            yield field_errors.invalid(f"{path}.{key}", value, NOT_NEGATIVE)


def check_at_most(target: Mapping[str, Any], path: str, limit: str, why: str, *keys: str) -> Iterator[Cause]:
    """No number may be larger than the one named ``limit``."""
    for key in keys:
        if (target.get(key) or 0) > (target.get(limit) or 0):
            yield field_errors.invalid(f"{path}.{key}", target.get(key) or 0, why)


def check_number_or_percent(value: Any, path: str) -> Iterator[Cause]:
    """A non-negative number or a percentage."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            yield field_errors.invalid(path, value, _PERCENT_RULE)
    elif value is not None and value < 0:
        yield field_errors.invalid(path, value, NOT_NEGATIVE)


def check_at_most_all(value: Any, path: str) -> Iterator[Cause]:
    """A percentage must not exceed 100%."""
    digits = value[:-1].lstrip("0") if isinstance(value, str) and _PERCENT.fullmatch(value) else ""
    if len(digits) > 3 or int(digits or 0) > 100:
        yield field_errors.invalid(path, value, "must not be greater than 100%")


def is_zero(value: Any) -> bool:
    """Whether a number or percentage is zero."""
    text = str(value or 0).rstrip("%")
    return text.isdigit() and not text.strip("0")


def check_immutable(new: Mapping[str, Any], old: Mapping[str, Any], path: str, *keys: str) -> Iterator[Cause]:
    """The fields must not change."""
    for key in keys:
        if new.get(key) != old.get(key):
            yield field_errors.invalid(f"{path}.{key}" if path else key, new.get(key), IMMUTABLE)


def check_one_of(value: Any, path: str, *supported: str) -> Iterator[Cause]:
    """A present value must be one of these."""
    if value is not None and value not in supported:
        yield field_errors.not_supported(path, value, supported)


def is_empty_selector(selector: Mapping[str, Any] | None) -> bool:
    """Whether a label selector has no requirement."""
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def selects_labels(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether the selector matches the labels; a missing selector matches nothing."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(requirement, labels) for requirement in selector.get("matchExpressions") or ()
    )


def _meets(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = requirement.get("key", ""), requirement.get("values") or ()
    return {
        "In": labels.get(key) in values,
        "NotIn": key not in labels or labels[key] not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }.get(requirement.get("operator", ""), False)


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A label selector as query parameter (``metav1.FormatLabelSelector``), ordered by key."""
    selector = selector or {}
    said = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for one in selector.get("matchExpressions") or ():
        values = f"({','.join(sorted(one.get('values') or ()))})"
        forms = {"In": "{} in {}", "NotIn": "{} notin {}", "Exists": "{}", "DoesNotExist": "!{}"}
        said.append((one["key"], forms[one["operator"]].format(one["key"], values)))
    return ",".join(text for _, text in sorted(said, key=lambda pair: pair[0]))


def check_labels(labels: Object | None, path: str) -> Iterator[Cause]:
    """The validation of labels."""
    yield from object_meta.check_labels(labels or {}, path)


def check_unique(values: Iterable[Any], path: str) -> Iterator[Cause]:
    """Values must be unique."""
    seen: list[Any] = []
    for index, value in enumerate(values):
        if value in seen:
            yield field_errors.duplicate(f"{path}[{index}]", value)
        seen.append(value)


def is_address(text: str, *versions: int) -> bool:
    """Whether it is an IP address, of one of the given versions if any."""
    address = _address(text)
    return address is not None and (not versions or address.version in versions)


@lru_cache(maxsize=4096)  # every update of an EndpointSlice contains all of its addresses
def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def check_endpoint_address(text: str, path: str) -> Iterator[Cause]:
    """An address reachable from other machines (``ValidateEndpointIP``), or that of a lab pod run as a process."""
    yield from (field_errors.invalid(path, text, why) for why in _extraordinary(text))


@lru_cache(maxsize=4096)
def _extraordinary(text: str) -> Sequence[str]:
    address, found = ipaddress.ip_address(text), []
    if address.is_unspecified:
        found.append(f"may not be unspecified ({text})")
    if address.is_loopback and address not in _PODS:
        found.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        found.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if address in _LINK_LOCAL_MULTICAST[address.version]:
        found.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return found


def is_network(text: str) -> bool:
    """Whether it is a CIDR."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def check_port(port: Any, path: str) -> Iterator[Cause]:
    """A number from 1 to 65535."""
    if not 1 <= int(port or 0) <= 65535:
        yield field_errors.invalid(path, port or 0, "must be between 1 and 65535, inclusive")
