"""Validation of single pod values (``k8s.io/apimachinery/pkg/util/validation``); empty means valid."""

import re

from lastcall_lab.apiserver.kinds import common_rules

_HEADER = re.compile(r"[-A-Za-z0-9]+")
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
MODE_RULE = "must be a number between 0 and 0777 (octal), both inclusive"


def port_number_error(port: int) -> str:
    """The port of a container or of a probe."""
    return "" if 1 <= port <= 65535 else "must be between 1 and 65535, inclusive"


def port_name_errors(name: str) -> list[str]:
    """RFC 6335 service name: all violations."""
    rules = [
        (len(name) > 15, "must be no more than 15 bytes"),
        (
            not re.fullmatch(r"[-a-z0-9]+", name),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (not re.search(r"[a-z]", name), "must contain at least one letter (a-z)"),
        ("--" in name, "must not contain consecutive hyphens"),
        (name.startswith("-") or name.endswith("-"), "must not begin or end with a hyphen"),
    ]
    return [rule for broken, rule in rules if broken]


def variable_name_error(name: str) -> str:
    """The name of an environment variable."""
    good = all(" " <= character <= "~" and character != "=" for character in name)
    rule = "a valid environment variable name must consist only of printable ASCII characters other than '='"
    return "" if good else rule


def header_name_error(name: str) -> str:
    """The name of an HTTP header."""
    rule = (
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for"
        " validation is '[-A-Za-z0-9]+')"
    )
    return "" if _HEADER.fullmatch(name) else rule


def config_key_error(key: str) -> str:
    """A key of a ConfigMap or Secret."""
    if len(key) > 253:
        return "must be no more than 253 bytes"
    if not _KEY.fullmatch(key):
        return (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or"
            " 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if key in (".", ".."):
        return f"must not be '{key}'"
    return "must not start with '..'" if key.startswith("..") else ""


def address_error(text: str) -> str:
    """An IP address."""
    return "" if common_rules.is_address(text) else "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def identity_error(number: int) -> str:
    """A numeric user or group id."""
    return "" if 0 <= number <= 2**31 - 1 else "must be between 0 and 2147483647, inclusive"


def inner_path_error(path: str) -> str:
    """A path within a volume."""
    if path.startswith("/"):
        return "must be a relative path"
    return backstep_error(path)


def file_path_error(path: str) -> str:
    """The path of a file that the kubelet writes into a volume."""
    return inner_path_error(path) or ("must not start with '..'" if path.startswith("..") else "")


def backstep_error(path: str) -> str:
    """A path without ``..``."""
    return "must not contain '..'" if ".." in path.split("/") else ""
