"""Field validation errors, in the words of ``k8s.io/apimachinery/pkg/util/validation/field``."""

import json
from collections.abc import Sequence
from typing import Any

from lastcall_lab.apiserver.values.api_errors import Cause


def invalid(path: str, value: Any, why: str) -> Cause:
    """The value is not valid for the field."""
    return Cause("FieldValueInvalid", f"Invalid value: {format_value(value)}: {why}", path)


def value_required(path: str, why: str = "") -> Cause:
    """The field is required."""
    return Cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", path)


def not_supported(path: str, value: Any, supported: Sequence[str]) -> Cause:
    """The value is not in the list of supported ones."""
    values = ", ".join(json.dumps(one) for one in supported)
    return Cause(
        "FieldValueNotSupported", f"Unsupported value: {format_value(value)}: supported values: {values}", path
    )


def duplicate(path: str, value: Any) -> Cause:
    """The value already exists."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {format_value(value)}", path)


def not_found(path: str, value: Any) -> Cause:
    """The value refers to a missing object or field."""
    return Cause("FieldValueNotFound", f"Not found: {format_value(value)}", path)


def forbidden(path: str, why: str) -> Cause:
    """The field must not be set, or must not change."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", path)


def too_long(path: str, limit: int) -> Cause:
    """The value has more characters than allowed."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path)


def too_many(path: str, found: int, limit: int) -> Cause:
    """The list or map has more entries than allowed."""
    items = "item" if limit == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {found}: must have at most {limit} {items}", path)


def type_invalid(path: str, value: Any, why: str) -> Cause:
    """The value has the wrong type."""
    return Cause("FieldValueTypeInvalid", f"Invalid value: {format_value(value)}: {why}", path)


def format_value(value: Any) -> str:
    """A value as it appears in messages."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not isinstance(value, str):  # Go quotes text, and encodes everything else as JSON with HTML escaping
        for character in "<>&":
            text = text.replace(character, f"\\u{ord(character):04x}")
    return text
