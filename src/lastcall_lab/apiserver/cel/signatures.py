"""Return types of functions of CEL and Kubernetes (``cel-go/checker/decls``, ``apiserver/pkg/cel/library``), pure."""

from collections.abc import Mapping, Sequence

Type = str | None
"""A type by cel-go's name; None if unknown."""

DYN = "dyn"
OPEN = "?"
"""The item type of an empty list or map, which fits any type."""

AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION = (
    f"kubernetes.authorization.{name}"
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)
_TIMESTAMP, _DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
_QUANTITY = "kubernetes.Quantity"

_RESULTS: Mapping[str, Sequence[str]] = {
    "bool": (
        *(
            "bool",
            "has",
            "startsWith",
            "endsWith",
            "contains",
            "matches",
            "isSorted",
            "isQuantity",
            "isInteger",
            "isIP",
        ),
        *("isCIDR", "isURL", "isGreaterThan", "isLessThan", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
        *(
            "isLinkLocalUnicast",
            "isGlobalUnicast",
            "containsIP",
            "containsCIDR",
            "ip.isCanonical",
            "hasValue",
            "isSemver",
        ),
        *("sets.contains", "sets.equivalent", "sets.intersects", "allowed", "errored"),
    ),
    "int": (
        *("int", "size", "indexOf", "lastIndexOf", "compareTo", "asInteger", "sign", "prefixLength", "family"),
        *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours"),
        *("getMinutes", "getSeconds", "getMilliseconds", "major", "minor", "patch"),
    ),
    "uint": ("uint",),
    "double": ("double", "asApproximateFloat"),
    "string": (
        *("string", "charAt", "lowerAscii", "upperAscii", "replace", "join", "substring", "trim", "find", "format"),
        *("base64.encode", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "reason", "error"),
        *("strings.quote", "jsonpatch.escapeKey"),
    ),
    "bytes": ("bytes", "base64.decode"),
    "list(string)": ("split", "findAll"),
    "map(string, list(string))": ("getQuery",),
    DYN: ("dyn",),
    _DURATION: ("duration",),
    _TIMESTAMP: ("timestamp",),
    _QUANTITY: ("quantity", "add", "sub"),
    "net.IP": ("ip",),
    "net.CIDR": ("cidr", "masked"),
    "kubernetes.URL": ("url",),
    "kubernetes.Semver": ("semver",),
    PATH_CHECK: ("path",),
    GROUP_CHECK: ("group",),
    RESOURCE_CHECK: ("resource", "subresource", "namespace", "name", "fieldSelector", "labelSelector"),
    DECISION: ("check",),
    AUTHORIZER: ("serviceAccount",),
}
_BY_NAME = {name: type_ for type_, names in _RESULTS.items() for name in names}
_SAME = frozenset({"sort", "distinct", "slice", "flatten", "reverse"})
"""Methods that return their receiver's type."""

_OF_ELEMENTS = frozenset({"sum", "min", "max"})
PACKAGES = frozenset({"sets", "ip", "base64", "strings", "jsonpatch", "optional"})
"""Namespaces of functions."""


def function_type(name: str, arguments: Sequence[Type]) -> Type:
    """The type of ``name(arguments)``."""
    first = arguments[0] if arguments else None
    if name == "type":
        return f"type({first})" if first else None
    if name in ("optional.of", "optional.ofNonZeroValue"):
        return f"optional_type({first})" if first else None
    return _BY_NAME.get(name)


def method_type(base: Type, name: str, arguments: Sequence[Type]) -> Type:
    """The type of ``base.name(arguments)``."""
    if name in _SAME:
        return base if base and base.startswith(("list(", "string")) else None
    if name in _OF_ELEMENTS:
        return element_type(base)
    if name in ("orValue", "value"):
        return unwrap_optional(base)
    if name == "or":
        return base
    return _BY_NAME.get(name)


def element_type(base: Type) -> Type:
    """The item type of a list."""
    if base == DYN:
        return DYN
    return base.removeprefix("list(")[:-1] if base and base.startswith("list(") else None


def key_type(base: Type) -> Type:
    """The key type of a map; ``dyn`` if the type is unknown."""
    if base == DYN:
        return DYN
    return _parameters(base)[0] if base and base.startswith("map(") else None


def value_type(base: Type) -> Type:
    """The value type of a map."""
    if base == DYN:
        return DYN
    return _parameters(base)[1] if base and base.startswith("map(") else None


def unwrap_optional(base: Type) -> Type:
    """The type within an optional type."""
    return base.removeprefix("optional_type(")[:-1] if base and base.startswith("optional_type(") else base


def join_types(first: Type, second: Type) -> Type:
    """The common type of both, or ``dyn`` if they differ; None if one is underivable."""
    if first is None or second is None:
        return None
    return common_type(first, second) or DYN


def common_type(first: Type, second: Type) -> Type:
    """The common type, if one of them is open or both are equal; None otherwise."""
    if first == second:
        return first
    for empty, other in ((first, second), (second, first)):
        if not empty or not other:
            return None
        if empty == OPEN or (OPEN in empty and empty.partition("(")[0] == other.partition("(")[0]):
            return other
    return None


def settle_type(type_: Type) -> Type:
    """The type with its open parts resolved."""
    return type_.replace(OPEN, DYN) if type_ else type_


def arithmetic_type(first: Type, second: Type) -> Type:
    """The type of ``+``, ``-`` and the like: a known operand decides; two unknown ones leave it open."""
    known = [one for one in (first, second) if one != DYN]
    if not known:
        return DYN
    if None in known or any(one in (_TIMESTAMP, _DURATION) for one in known):
        return None
    return known[0]


def _parameters(base: str) -> tuple[str, str]:
    first, _, second = base.removeprefix("map(")[:-1].partition(", ")
    return first, second
