"""Violations of rules, in the words of ``k8s.io/apimachinery/pkg/util/validation/field``."""

import json
from collections.abc import Sequence
from typing import Any

from lastcall_lab.apiserver.values.api_errors import Cause


def invalid(path: str, value: Any, why: str) -> Cause:
    """The value is not one that the field can have."""
    return Cause("FieldValueInvalid", f"Invalid value: {format_value(value)}: {why}", path)


def value_required(path: str, why: str = "") -> Cause:
    """The field must have a value."""
    return Cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", path)


def not_supported(path: str, value: Any, supported: Sequence[str]) -> Cause:
    """The value is not one of those in the list."""
    values = ", ".join(json.dumps(one) for one in supported)
    return Cause(
        "FieldValueNotSupported", f"Unsupported value: {format_value(value)}: supported values: {values}", path
    )


def duplicate(path: str, value: Any) -> Cause:
    """The value is there already."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {format_value(value)}", path)


def not_found(path: str, value: Any) -> Cause:
    """The value names something that is not there."""
    return Cause("FieldValueNotFound", f"Not found: {format_value(value)}", path)


def forbidden(path: str, why: str) -> Cause:
    """The field must not be set, or must not change, here."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", path)


def too_long(path: str, limit: int) -> Cause:
    """The value has more characters than allowed."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path)


def too_many(path: str, found: int, limit: int) -> Cause:
    """The list or map has more entries than allowed."""
    items = "item" if limit == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {found}: must have at most {limit} {items}", path)


def type_invalid(path: str, value: Any, why: str) -> Cause:
    """The value has another type than the field."""
    return Cause("FieldValueTypeInvalid", f"Invalid value: {format_value(value)}: {why}", path)


def format_value(value: Any) -> str:
    """A value as messages show it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not isinstance(value, str):  # which Go quotes, while it encodes everything else, and that with care for browsers
        for character in "<>&":
            text = text.replace(character, f"\\u{ord(character):04x}")
    return text
