"""Validation of names, labels and annotations (``k8s.io/apimachinery/pkg/util/validation``); empty means valid."""

import re
from functools import lru_cache

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_QUALIFIED_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_EMPTY_NAME = "name part must be non-empty"
_SERVICE_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def dns_label_error(name: str) -> str:
    """RFC 1123 label: names of containers, namespaces, services."""
    if len(name) > 63:
        return "must be no more than 63 characters"
    if _LABEL.fullmatch(name):
        return ""
    return "must not contain dots" if _SUBDOMAIN.fullmatch(name) else _LABEL_RULE


def subdomain_error(name: str) -> str:
    """RFC 1123 subdomain: most names."""
    if len(name) > 253:
        return "must be no more than 253 characters"
    return "" if _SUBDOMAIN.fullmatch(name) else _SUBDOMAIN_RULE


def service_name_error(name: str) -> str:
    """RFC 1035 label: the names in custom resource definitions."""
    if len(name) > 63:
        return "must be no more than 63 characters"
    return "" if _SERVICE.fullmatch(name) else _SERVICE_RULE


def path_segment_error(name: str) -> str:
    """Path segment: the names of RBAC objects."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    wrong = next((character for character in "/%" if character in name), "")
    return f"may not contain '{wrong}'" if wrong else ""


@lru_cache(maxsize=4096)
def qualified_name_error(key: str) -> str:
    """The key of a label, an annotation or a taint: a name with an optional prefix."""
    prefix, slash, name = key.rpartition("/")
    if slash and not prefix:
        return "prefix part must be non-empty"
    if "/" in prefix:
        return (
            f"a valid label key {_QUALIFIED_RULE} with an optional DNS subdomain prefix and '/' (e.g."
            " 'example.com/MyName')"
        )
    if prefix and (wrong := subdomain_error(prefix)):
        return f"prefix part {wrong}"
    if not name:
        return _EMPTY_NAME
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    return "" if _QUALIFIED.fullmatch(name) else f"name part {_QUALIFIED_RULE}"


def qualified_name_errors(key: str) -> list[str]:
    """All violations in such a key: an empty name violates two rules."""
    wrong = qualified_name_error(key)
    return [wrong, f"name part {_QUALIFIED_RULE}"] if wrong == _EMPTY_NAME else [wrong] if wrong else []


@lru_cache(maxsize=4096)
def label_value_error(value: str) -> str:
    """The value of a label."""
    if len(value) > 63:
        return "must be no more than 63 bytes"
    return "" if not value or _QUALIFIED.fullmatch(value) else _VALUE_RULE
