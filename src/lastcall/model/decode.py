"""From YAML or JSON text to typed structs, with every violation told at once: field, value and rule."""

import json
import re
from typing import Any, TypeVar

import msgspec
import yaml

from lastcall.errors import InvalidInput

T = TypeVar("T")

_AT = re.compile(r"^(?P<rule>.*?)(?: - at `(?P<path>\$[^`]*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_MOST = 50


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML as Kubernetes reads it: time stamps stay text, a key that stands twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (dict, list)):
                raise yaml.constructor.ConstructorError(None, None, "a key must be text", key_node.start_mark)
            if key in keys and key != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f'key "{key}" already set in map', key_node.start_mark
                )
            keys.add(key)
        result: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return result


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def documents(data: bytes, source: str) -> list[Any]:
    """The documents in YAML or JSON text, empty ones left out; InvalidInput with line and column."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(source, [f"not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}"]) from error
    if text.lstrip()[:1] in ("{", "["):
        try:
            return [msgspec.json.decode(data)]
        except msgspec.DecodeError:
            pass  # YAML may begin with a brace too; its reader names line and column
    try:
        return [document for document in yaml.load_all(text, _Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidInput(source, [f"{where}{error.problem or error.context}"]) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidInput(source, [f"not YAML: {' '.join(str(error).split())}"]) from error


def convert(value: Any, type_: type[T], source: str, *, at: str = "") -> T:
    """``value`` (of dicts, lists and scalars) as a ``type_``; InvalidInput lists up to 50 violations with their paths.

    ``at`` is put before every path: where in its file the value stands.
    """
    result, violations = collect(value, type_, at=at)
    if violations or result is None:
        raise InvalidInput(source, violations)
    return result


def collect(value: Any, type_: type[T], *, at: str = "") -> tuple[T | None, list[str]]:
    """The same, but what is right about ``value`` comes back beside up to 50 violations; None if nothing is left."""
    violations: list[str] = []
    whole = value
    while len(violations) < _MOST:
        try:
            return msgspec.convert(whole, type_), violations
        except msgspec.ValidationError as error:
            violation, path = _explain(str(error), whole, at)
            if violation in violations:
                break
            violations.append(violation)
            whole = _without(whole, path)
    return None, violations


def shown(value: Any) -> str:
    """A value as an error message quotes it, cut to 60 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _explain(message: str, whole: Any, at: str) -> tuple[str, list[str | int]]:
    match = _AT.match(message)
    assert match is not None
    rule, where = match["rule"], match["path"] or "$"
    path: list[str | int] = [
        name or (int(index) if index else 0) for name, index in (m.groups() for m in _STEP.finditer(where))
    ]
    found, present = _look_up(whole, path)
    field = (at + where[1:]).lstrip(".") or "document"
    missing = "missing required field" in rule
    quoted = f": {shown(found)}" if present and not missing and not rule.startswith("Object contains") else ""
    return f"{field}{quoted}: {rule[:1].lower()}{rule[1:]}", path if not missing else []


def _look_up(whole: Any, path: list[str | int]) -> tuple[Any, bool]:
    for step in path:
        try:
            whole = whole[step]
        except (KeyError, IndexError, TypeError):
            return None, False
    return whole, True


def _without(whole: Any, path: list[str | int]) -> Any:
    """A copy without what stands at ``path``, so that the next violation can be found."""
    if not path:
        return whole
    step, rest = path[0], path[1:]
    try:
        copy = whole.copy()
        if rest:
            copy[step] = _without(whole[step], rest)
        else:
            del copy[step]
    except (KeyError, IndexError, TypeError, AttributeError):
        return whole
    return copy
