"""Formats values like Go's ``fmt`` for messages (pure)."""

import json
from typing import Any


def go_value(value: Any) -> str:
    """As ``%v``: ``map[a:1 b:[x y]]``."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{go_value(one)}' for name, one in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(go_value(one) for one in value)}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def go_syntax(value: Any) -> str:
    """As ``%#v``: ``map[string]interface {}{"a":1}``."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(name)}:{go_syntax(one)}" for name, one in sorted(value.items()))
        return f"map[string]interface {{}}{{{pairs}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(go_syntax(one) for one in value)}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "interface {}(nil)" if value is None else go_value(value)


def go_type_name(value: Any) -> str:
    """The Go type of a JSON value."""
    if isinstance(value, bool):
        return "bool"
    names = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", int: "int64", float: "float64"}
    return names.get(type(value), "%!s(<nil>)")
