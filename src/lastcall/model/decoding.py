"""Converts YAML or JSON text to typed structs, and reports every violation at once: field, value and rule."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeVar

import msgspec
import yaml

from lastcall.errors import InvalidInput
from lastcall.model.choices import choices_text
from lastcall.model.foreign_text import plain_text
from lastcall.model.yaml_text import MAX_DEPTH, NESTED_TOO_DEEP, PARSER_TOO_DEEP, YamlLoader

T = TypeVar("T")

Path = tuple[str | int, ...]

_MOST = 50
_JSON_SPACE = " \t\r\n"
_WHERE = re.compile(r"^(?P<rule>.*?)(?: - at `(?P<path>\$[^`]*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[(\.\.\.)\]")
_TYPES = {
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "datetime": "an RFC 3339 time",
}


def parse_documents(data: bytes, source: str) -> list[Any]:
    """The non-empty documents in YAML or JSON text; InvalidInput with line and column.

    JSON documents may follow each other without a separator, as kubectl accepts them (``YAMLOrJSONDecoder``).
    """
    text = _decode_text(data, source)
    if text.lstrip()[:1] in ("{", "["):
        try:
            return [document for document in _parse_json(text) if document is not None]
        except (ValueError, RecursionError):
            pass  # YAML may begin with a brace too; its parser reports line and column
    try:
        return [document for document in yaml.load_all(text, YamlLoader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = NESTED_TOO_DEEP if error.problem == PARSER_TOO_DEEP else error.problem or error.context
        raise InvalidInput(source, [f"{where}{problem}"]) from error
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidInput(source, [f"not YAML: {' '.join(str(error).split())}"]) from error


def convert(value: Any, type_: type[T], source: str, *, at: str = "") -> T:
    """Converts ``value`` (dicts, lists and scalars) to ``type_``; InvalidInput lists up to 50 violations with paths.

    In a mapping null counts as absent. ``at`` prefixes every path: the value's own place in its file.
    """
    result, violations = convert_readable(value, type_, at=at)
    if violations or result is None:
        raise InvalidInput(source, violations)
    return result


def convert_readable(value: Any, type_: type[T], *, at: str = "") -> tuple[T | None, list[str]]:
    """Like ``convert``, but returns the readable part beside up to 50 violations; None if nothing is readable."""
    violations: list[str] = []
    whole, places = value, _RemovedPaths()
    try:
        return msgspec.convert(value, type_), violations
    except msgspec.ValidationError:
        whole = _without_nulls(value)
    while len(violations) < _MOST:
        try:
            return msgspec.convert(whole, type_), violations
        except msgspec.ValidationError as error:
            rule, path = _explain_error(error, whole, type_)
            place = places.original_path(path)
            missing = re.match("Object missing required field `(.*)`", rule)
            if not missing:
                said = f"must be {allowed}" if (allowed := choices_text(type_, path)) else _rule_text(rule)
                violations.append(f"{_field_path(at, place)}: {quote_value(_look_up(whole, path))}: {said}")
            elif not places.is_removed((*place, missing[1])):
                violations.append(f"{_field_path(at, (*place, missing[1]))}: missing: must be given")
            if not path:
                break
            places.remove(path, whole)
            whole = _without_path(whole, path)
    return None, violations


def quote_value(value: Any) -> str:
    """The value as quoted in an error message, cut to 60 characters."""
    pieces = json.JSONEncoder(ensure_ascii=False, default=str).iterencode(_shallow_copy(value, 8))
    text = plain_text("".join(islice(pieces, 61)))
    return text if len(text) <= 60 else text[:57] + "..."


class _RemovedPaths:
    """The removed values and the former indexes of list items, so that messages give the index in the file."""

    def __init__(self) -> None:
        self._left: dict[Path, list[int]] = {}
        self._gone: set[Path] = set()

    def is_removed(self, place: Path) -> bool:
        """Whether the value at ``place`` was removed."""
        return place in self._gone

    def original_path(self, path: Path) -> Path:
        """Translates a path in the remaining value to the path in the original."""
        before: Path = ()
        for step in path:
            indexes = self._left.get(before)
            before += (indexes[step] if indexes and isinstance(step, int) else step,)
        return before

    def remove(self, path: Path, whole: Any) -> None:
        """Records that the value at ``path`` is about to be removed from ``whole``."""
        self._gone.add(self.original_path(path))
        step = path[-1]
        if isinstance(step, int):
            parent = path[:-1]
            size = len(_look_up(whole, parent))
            del self._left.setdefault(self.original_path(parent), list(range(size)))[step]


def _decode_text(data: bytes, source: str) -> str:
    """Decodes UTF-8, or UTF-16 with a byte order mark, which some Windows shells write on redirection."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput(source, [f"not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}"]) from error


def _parse_json(text: str) -> Iterator[Any]:
    """The JSON values. ValueError for anything that Go rejects too: NaN, unpaired surrogates, a duplicate key."""
    decoder, text, at = json.JSONDecoder(object_pairs_hook=_unique_keys), text.strip(_JSON_SPACE), 0
    while at < len(text):
        value, end = decoder.raw_decode(text, at)
        msgspec.json.decode(text[at:end])
        yield value
        at = next((place for place in range(end, len(text)) if text[place] not in _JSON_SPACE), len(text))


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError  # the YAML parser reports the key and its place
    return mapping


def _explain_error(error: msgspec.ValidationError, whole: Any, type_: Any) -> tuple[str, Path]:
    """The broken rule in msgspec's words, and the path of the offending value."""
    match = _WHERE.match(str(error))
    assert match is not None
    path: Path = ()
    for step in _STEP.finditer(match["path"] or ""):
        name, index, any_key = step.groups()
        path += (_offending_key(error, whole, path, type_) if any_key else name or int(index),)
    return match["rule"], path


def _offending_key(error: msgspec.ValidationError, whole: Any, path: Path, type_: Any) -> str:
    """The offending key of the mapping at ``path``; msgspec does not report it, so each key is tried."""
    mapping = _look_up(whole, path)
    for key in mapping:
        try:
            msgspec.convert(_with_value(whole, path, {key: mapping[key]}), type_)
        except msgspec.ValidationError as again:
            if str(again) == str(error):
                return str(key)
    raise error


def _field_path(at: str, path: Path) -> str:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"{at}{steps}".lstrip(".") or "document"


def _rule_text(rule: str) -> str:
    match = re.fullmatch(r"Expected `(.*?)`(?: of type `.*`)?(.*?)(?:, got `(.*)`)?", rule)
    if not match:
        return f"{rule[:1].lower()}{rule[1:]}"
    expected = " or ".join(_TYPES.get(kind, kind) for kind in match[1].split(" | ") if kind != "null")
    found = f", not {_TYPES.get(match[3], match[3])}" if match[3] else ""
    return f"must be {expected}{match[2]}{found}"


def _look_up(whole: Any, path: Path) -> Any:
    for step in path:
        whole = whole[step]
    return whole


def _with_value(whole: Any, path: Path, value: Any) -> Any:
    """A copy with ``value`` at ``path``."""
    if not path:
        return value
    copy = whole.copy()
    copy[path[0]] = _with_value(whole[path[0]], path[1:], value)
    return copy


def _without_path(whole: Any, path: Path) -> Any:
    """A copy without the value at ``path``, so that the next violation can be found."""
    parent = _look_up(whole, path[:-1]).copy()
    del parent[path[-1]]
    return _with_value(whole, path[:-1], parent)


def _without_nulls(value: Any, levels: int = MAX_DEPTH) -> Any:
    """A copy whose mappings have no nulls, down to the depth that any struct reaches."""
    if isinstance(value, dict) and levels:
        return {key: _without_nulls(item, levels - 1) for key, item in value.items() if item is not None}
    if isinstance(value, list) and levels:
        return [_without_nulls(item, levels - 1) for item in value]
    return value


def _shallow_copy(value: Any, levels: int) -> Any:
    """A copy of at most ``levels`` levels, which is quick to print."""
    if not isinstance(value, (dict, list)):
        return value
    if not levels:
        return "..."
    if isinstance(value, dict):
        return {key: _shallow_copy(item, levels - 1) for key, item in islice(value.items(), 30)}
    return [_shallow_copy(item, levels - 1) for item in value[:30]]
