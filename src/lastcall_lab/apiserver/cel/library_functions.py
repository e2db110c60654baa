"""The functions that Kubernetes adds to CEL (``k8s.io/apiserver/pkg/cel/library`` and cel-go's ``ext``).

Within an expression, a quantity, an IP address, a network or a URL is a map with one key that no object has, so equal
values are equal maps. An exception's text is the error's text.
"""

import base64
import ipaddress
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import islice, pairwise
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from lastcall.model import quantities
from lastcall_lab.apiserver.values.regular_expressions import compile_pattern

_QUANTITY, _IP, _CIDR, _URL = "@quantity", "@ip", "@cidr", "@url"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _can(function: Callable[[str], object]) -> Callable[[str], bool]:
    """Whether the text can be parsed."""

    def can(text: str) -> bool:
        try:
            function(text)
        except ValueError:
            return False
        return True

    return can


_LARGEST = 10_000_000
"""The maximum length of texts and lists that a function returns."""


def _small(size: int) -> bool:
    """ValueError for a result that is too large; Kubernetes stops such expressions by their cost."""
    if size > _LARGEST:
        raise ValueError("actual cost limit exceeded")
    return True


# -- quantities --------------------------------------------------------------------------------------------------------


def _quantity(text: str) -> Mapping[str, str]:
    return {_QUANTITY: str(quantities.parse_quantity(text))}


def _number(value: Any) -> Fraction:
    return Fraction(value[_QUANTITY] if isinstance(value, dict) else value)


def _compare_values(a: Any, b: Any) -> int:
    left, right = _number(a), _number(b)
    return (left > right) - (left < right)


def _sum_of(a: Any, b: Any) -> Mapping[str, str]:
    return {_QUANTITY: str(_number(a) + _number(b))}


def _difference(a: Any, b: Any) -> Mapping[str, str]:
    return {_QUANTITY: str(_number(a) - _number(b))}


def _integer(value: Any) -> int:
    number = _number(value)
    if number.denominator != 1:
        raise ValueError("cannot convert value to integer")
    return int(number)


# -- addresses ---------------------------------------------------------------------------------------------------------


def _parsed_ip(text: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"IP Address '{text}' parse error during conversion from string") from None
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address.scope_id):
        raise ValueError(f"IPv4-mapped and zoned addresses are not allowed: '{text}'")
    return address


def _parsed_cidr(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    try:
        return ipaddress.ip_interface(text if "/" in text else "none")
    except ValueError:
        raise ValueError(f"network address parse error during conversion from string: {text}") from None


def _ip(value: Any) -> Mapping[str, str]:
    """From a text, or the address of a network."""
    if isinstance(value, dict):
        return {_IP: value[_CIDR].partition("/")[0]}
    return {_IP: str(_parsed_ip(value))}


def _address(value: Any) -> Address:
    return _parsed_ip(value[_IP] if isinstance(value, dict) else value)


def _cidr(text: str) -> Mapping[str, str]:
    return {_CIDR: str(_parsed_cidr(text))}


def _network(value: Any) -> Network:
    return _parsed_cidr(value[_CIDR] if isinstance(value, dict) else value).network


def _contains_network(network: Any, other: Any) -> bool:
    outer, inner = _network(network), _network(other)
    same = outer.version == inner.version and outer.prefixlen <= inner.prefixlen
    return same and inner.network_address in outer


# -- URLs --------------------------------------------------------------------------------------------------------------


def _url(text: str) -> Mapping[str, str]:
    parts = urlsplit(text)
    if not (parts.scheme or text.startswith("/")):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return {_URL: text}


def _host(value: Mapping[str, str]) -> str:
    return urlsplit(value[_URL]).netloc.rpartition("@")[2]


# -- strings -----------------------------------------------------------------------------------------------------------


def _index(of: Any, what: Any, start: int = 0) -> int:
    if isinstance(of, str):
        return of.find(what, start)
    return next((index for index, one in enumerate(of) if one == what), -1)


def _last_index(of: Any, what: Any) -> int:
    if isinstance(of, str):
        return of.rfind(what)
    return next((index for index in reversed(range(len(of))) if of[index] == what), -1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise ValueError(f"index out of range: {start if not 0 <= start <= len(text) else end}")
    return text[start:end]


def _character(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise ValueError(f"index out of range: {index}")
    return text[index : index + 1]


def _replace_text(text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old) if count < 0 else min(count, text.count(old))
    return text.replace(old, new, count) if _small(found * len(new) + len(text)) else text


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if not count:
        return []
    if not separator:
        return list(text)
    return text.split(separator, count - 1 if count > 0 else -1)


def _find(text: str, pattern: str) -> str:
    found = compile_pattern(pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    matches = compile_pattern(pattern).finditer(text)
    return [match[0] for match in (matches if count < 0 else islice(matches, count))]


# -- lists and sets ----------------------------------------------------------------------------------------------------


def _least(values: Sequence[Any]) -> Any:
    if not values:
        raise ValueError("min called on empty list")
    return min(values)


def _greatest(values: Sequence[Any]) -> Any:
    if not values:
        raise ValueError("max called on empty list")
    return max(values)


def _all_of(*values: Any) -> Sequence[Any]:
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values


def _distinct(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _flat(values: Sequence[Any], depth: int = 1) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        flat += _flat(value, depth - 1) if isinstance(value, list) and depth > 0 else [value]
    return flat


def _contains_all(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return all(one in a for one in b)


_STRINGS: Mapping[str, Callable[..., Any]] = {
    "charAt": _character,
    "indexOf": _index,
    "lastIndexOf": _last_index,
    "lowerAscii": lambda text: "".join(one.lower() if one.isascii() else one for one in text),
    "upperAscii": lambda text: "".join(one.upper() if one.isascii() else one for one in text),
    "replace": _replace_text,
    "split": _split,
    "join": lambda values, separator="": separator.join(values),
    "substring": _substring,
    "trim": str.strip,
    "reverse": lambda value: value[::-1],
    "find": _find,
    "findAll": _find_all,
    "base64.encode": lambda data: base64.b64encode(data).decode(),
    "base64.decode": base64.b64decode,
}

_LISTS: Mapping[str, Callable[..., Any]] = {
    "isSorted": lambda values: all(a <= b for a, b in pairwise(values)),
    "sum": lambda values: sum(values[1:], values[0]) if values else 0,
    "min": _least,
    "max": _greatest,
    "sort": sorted,
    "distinct": _distinct,
    "flatten": _flat,
    "slice": lambda values, start, end: values[start:end],
    "lists.range": lambda count: list(range(count)) if _small(count) else [],
    "sets.contains": _contains_all,
    "sets.equivalent": lambda a, b: _contains_all(a, b) and _contains_all(b, a),
    "sets.intersects": lambda a, b: any(one in a for one in b),
    "math.greatest": lambda *values: max(_all_of(*values)),
    "math.least": lambda *values: min(_all_of(*values)),
    "math.abs": abs,
    "math.ceil": lambda value: float(math.ceil(value)),
    "math.floor": lambda value: float(math.floor(value)),
}

_QUANTITIES: Mapping[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "isQuantity": _can(quantities.parse_quantity),
    "isInteger": lambda value: _number(value).denominator == 1,
    "asInteger": _integer,
    "asApproximateFloat": lambda value: float(_number(value)),
    "sign": lambda value: _compare_values(value, 0),
    "compareTo": _compare_values,
    "isGreaterThan": lambda a, b: _compare_values(a, b) > 0,
    "isLessThan": lambda a, b: _compare_values(a, b) < 0,
    "add": _sum_of,
    "sub": _difference,
}

_ADDRESSES: Mapping[str, Callable[..., Any]] = {
    "ip": _ip,
    "isIP": _can(_parsed_ip),
    "ip.isCanonical": lambda text: str(_parsed_ip(text)) == text,
    "family": lambda value: _address(value).version,
    "isUnspecified": lambda value: _address(value).is_unspecified,
    "isLoopback": lambda value: _address(value).is_loopback,
    "isLinkLocalMulticast": lambda value: str(_address(value)).startswith(("224.0.0.", "ff02:")),
    "isLinkLocalUnicast": lambda value: _address(value).is_link_local,
    "isGlobalUnicast": lambda value: (
        not (
            _address(value).is_unspecified
            or _address(value).is_loopback
            or _address(value).is_multicast
            or _address(value).is_link_local
        )
    ),
    "cidr": _cidr,
    "isCIDR": _can(_parsed_cidr),
    "containsIP": lambda network, address: _address(address) in _network(network),
    "containsCIDR": _contains_network,
    "masked": lambda network: {_CIDR: str(_network(network))},
    "prefixLength": lambda network: _network(network).prefixlen,
}

_URLS: Mapping[str, Callable[..., Any]] = {
    "url": _url,
    "isURL": _can(_url),
    "getScheme": lambda value: urlsplit(value[_URL]).scheme,
    "getHost": _host,
    "getHostname": lambda value: urlsplit(value[_URL]).hostname or "",
    "getPort": lambda value: str(urlsplit(value[_URL]).port or ""),
    "getEscapedPath": lambda value: quote(unquote(urlsplit(value[_URL]).path), safe="/:@!$&'()*+,;=~"),
    "getQuery": lambda value: parse_qs(urlsplit(value[_URL]).query, keep_blank_values=True),
}

FUNCTIONS: Mapping[str, Callable[..., Any]] = {**_STRINGS, **_LISTS, **_QUANTITIES, **_ADDRESSES, **_URLS}
"""By name; methods get their receiver as the first argument."""
