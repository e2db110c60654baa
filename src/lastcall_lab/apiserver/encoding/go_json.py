"""JSON as Go decodes it: its error messages and duplicate fields.

Clients and users match on these messages. This code runs only for bodies that are invalid or suspicious; msgspec
decodes all others.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

MAX_DEPTH = 200
"""Nesting of objects and lists. Go's decoder allows 10,000; here each level takes some frames of Python's stack."""

_SPACE = re.compile(r"[ \t\r\n]*")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d[\d.eE+-]*|true|false|null', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_END = "unexpected end of JSON input"
_TOO_DEEP = "exceeded max depth"


class MalformedJson(ValueError):
    """The text is not valid JSON; the message is that of Go's decoder."""


def decode_json(data: bytes) -> Any:
    """The value; of duplicate fields the last one counts. MalformedJson if it is invalid or too deep."""
    try:
        return decode_clean_json(data)
    except MalformedJson:
        value = _laxly(data.decode(errors="replace"))
    if is_deep(value):
        raise MalformedJson(_TOO_DEEP)
    return value


def decode_clean_json(data: bytes) -> Any:
    """The value of clean JSON. MalformedJson, without Go's words, if it is invalid or too deep."""
    try:
        value = msgspec.json.decode(data)
    except RecursionError:
        raise MalformedJson(_TOO_DEEP) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedJson(str(error)) from None
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and is_deep(value):
        raise MalformedJson(_TOO_DEEP)
    return value


def _laxly(text: str) -> Any:
    """The value of a text that Go accepts although it is not valid Unicode. MalformedJson if it is invalid."""
    if said := syntax_error(text):
        raise MalformedJson(said)
    try:
        return msgspec.json.decode(_LONE_SURROGATE.sub("\ufffd", json.dumps(json.loads(text), ensure_ascii=False)))
    except RecursionError:
        raise MalformedJson(_TOO_DEEP) from None
    except ValueError as error:  # a number with thousands of digits
        raise MalformedJson(str(error)) from None


def is_deep(value: Any) -> bool:
    """Whether more than ``MAX_DEPTH`` objects and lists are nested."""
    found = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        inner = (part for one in found for part in (one.values() if isinstance(one, dict) else one))
        found = [part for part in inner if isinstance(part, dict | list)]
        if not found:
            return False
    return True


def strict_complaints(data: bytes, value: Any, unknown: Sequence[str] = ()) -> list[str]:
    """The complaints of a strict decoder about ``data``, decoded as ``value``, in the order of the text.

    ``unknown`` are the paths of unknown fields; those and their content are never reported as duplicates. A value
    encoded again has as many quotation marks as its source text if no field was dropped and no quote was escaped. This
    shows for nearly every text that it has no duplicates.
    """
    if b"\\u0022" not in data and data.count(b'"') == msgspec.json.encode(value).count(b'"'):
        return [f'unknown field "{path}"' for path in unknown]
    pairs = json.loads(data, object_pairs_hook=_Pairs)
    return list(dict.fromkeys(_complaints(pairs, "", frozenset(unknown))))


class _Pairs(list[tuple[str, Any]]):
    """The fields of an object as they are in the text."""


def _complaints(value: Any, path: str, unknown: frozenset[str]) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, inner in value:
            below = f"{path}.{key}" if path else key
            if below in unknown:
                yield f'unknown field "{below}"'
                continue
            if key in seen:
                yield f'duplicate field "{below}"'
            seen.add(key)
            yield from _complaints(inner, below, unknown)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _complaints(inner, f"{path}[{index}]", unknown)


def json_type_name(value: Any) -> str:
    """Go's name of the JSON type of a value."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
    return "null"


# -- errors ------------------------------------------------------------------------------------------------------------


def syntax_error(text: str) -> str:
    """The error of Go's scanner; empty if the text is JSON."""
    try:
        end = _value(text, _skip(text, 0))
        rest = _skip(text, end)
        return _unexpected_character(text, rest, "after top-level value") if rest < len(text) else ""
    except MalformedJson as error:
        return str(error)
    except RecursionError:
        return _TOO_DEEP


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int) -> int:
    """The end of the value that begins at ``at``."""
    character = text[at : at + 1]
    if character == "{":
        return _object(text, _skip(text, at + 1))
    if character == "[":
        return _array(text, _skip(text, at + 1))
    if character == '"' or (character and character in "-0123456789tfn"):
        return _literal(text, at)
    raise MalformedJson(_unexpected_character(text, at, "looking for beginning of value"))


def _object(text: str, at: int) -> int:
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        if text[at : at + 1] != '"':
            raise MalformedJson(_unexpected_character(text, at, "looking for beginning of object key string"))
        at = _skip(text, _literal(text, at))
        if text[at : at + 1] != ":":
            raise MalformedJson(_unexpected_character(text, at, "after object key"))
        at = _skip(text, _value(text, _skip(text, at + 1)))
        if text[at : at + 1] == "}":
            return at + 1
        if text[at : at + 1] != ",":
            raise MalformedJson(_unexpected_character(text, at, "after object key:value pair"))
        at = _skip(text, at + 1)


def _array(text: str, at: int) -> int:
    if text[at : at + 1] == "]":
        return at + 1
    while True:
        at = _skip(text, _value(text, at))
        if text[at : at + 1] == "]":
            return at + 1
        if text[at : at + 1] != ",":
            raise MalformedJson(_unexpected_character(text, at, "after array element"))
        at = _skip(text, at + 1)


def _literal(text: str, at: int) -> int:
    found = _TOKEN.match(text, at)
    if text[at] == '"':
        return found.end() if found and not _bad_escape(found[0]) else _bad_string(text, at)
    if text[at] in "tfn":
        return found.end() if found else _bad_word(text, at)
    return _number(text, at)


def _bad_escape(token: str) -> bool:
    return "\\" in token and not re.fullmatch(r'"(?:[^"\\]|\\(?:[bfnrt\\/"]|u[0-9a-fA-F]{4}))*"', token, re.DOTALL)


def _bad_string(text: str, at: int) -> int:
    at += 1
    while at < len(text):
        if text[at] < " ":
            raise MalformedJson(_unexpected_character(text, at, "in string literal"))
        if text[at] == "\\":
            at += 1
            if text[at : at + 1] == "u":
                bad = next(
                    (i for i in range(at + 1, at + 5) if text[i : i + 1] not in set("0123456789abcdefABCDEF")), 0
                )
                if bad:
                    raise MalformedJson(_unexpected_character(text, bad, "in \\u hexadecimal character escape"))
            elif text[at : at + 1] not in tuple('bfnrt\\/"'):
                raise MalformedJson(_unexpected_character(text, at, "in string escape code"))
        at += 1
    raise MalformedJson(_END)


def _bad_word(text: str, at: int) -> int:
    word = {"t": "true", "f": "false", "n": "null"}[text[at]]
    wrong = next(i for i in range(len(word)) if text[at + i : at + i + 1] != word[i])
    raise MalformedJson(_unexpected_character(text, at + wrong, f"in literal {word} (expecting '{word[wrong]}')"))


def _number(text: str, at: int) -> int:
    found = _NUMBER.match(text, at)
    if not found:
        raise MalformedJson(_unexpected_character(text, at + 1, "in numeric literal"))
    end = found.end()
    if text[end : end + 1] == "." and "." not in found[0] and "e" not in found[0].lower():
        raise MalformedJson(_unexpected_character(text, end + 1, "after decimal point in numeric literal"))
    if text[end : end + 1] in ("e", "E") and "e" not in found[0].lower():
        sign = text[end + 1 : end + 2] in ("+", "-")
        raise MalformedJson(_unexpected_character(text, end + 1 + sign, "in exponent of numeric literal"))
    return end


def _unexpected_character(text: str, at: int, where: str) -> str:
    if at >= len(text):
        return _END
    character = text[at]
    shown = {"'": "\\'", '"': '"'}.get(character) or json.dumps(character, ensure_ascii=ord(character) < 0x20)[1:-1]
    return f"invalid character '{shown}' {where}"
