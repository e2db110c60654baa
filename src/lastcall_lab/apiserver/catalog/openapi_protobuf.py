"""OpenAPI v2 in protobuf (``openapi.v2.Document`` of google/gnostic), the only form in which kubectl reads it.

kubectl uses it to validate what the server does not: manifests of several objects in one ``List``. It reads only the
definitions, so the paths are omitted.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from lastcall_lab.apiserver.values.request import Object

MEDIA = (
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
)
"""The old and the new media type."""

_TEXTS = {"$ref": 1, "format": 2, "description": 4}


def encode_document(said: Object) -> bytes:
    """Encodes the JSON document."""
    info = _text(1, said["info"]["title"]) + _text(2, said["info"]["version"])
    definitions = _named_schemas(said["definitions"])
    return _text(1, said["swagger"]) + _message(2, info) + _message(8, b"") + _message(9, definitions)


def _schema(said: Mapping[str, Any]) -> bytes:
    parts = [_text(number, said[name]) for name, number in _TEXTS.items() if name in said]
    parts += [_text(19, name) for name in said.get("required", ())]
    parts += [_message(20, _yaml(value)) for value in said.get("enum", ())]
    if "additionalProperties" in said:
        parts.append(_message(21, _message(1, _schema(said["additionalProperties"]))))
    if "type" in said:
        parts.append(_message(22, _text(1, said["type"])))
    if "items" in said:
        parts.append(_message(23, _message(1, _schema(said["items"]))))
    parts += [_message(24, _schema(one)) for one in said.get("allOf", ())]
    if "properties" in said:
        parts.append(_message(25, _named_schemas(said["properties"])))
    extensions = [(name, value) for name, value in said.items() if name.startswith("x-")]
    parts += [_message(31, _text(1, name) + _message(2, _yaml(value))) for name, value in extensions]
    return b"".join(parts)


def _named_schemas(schemas: Mapping[str, Any]) -> bytes:
    return b"".join([_message(1, _text(1, name) + _message(2, _schema(one))) for name, one in schemas.items()])


def _yaml(value: Any) -> bytes:
    """Any value as YAML, of which JSON is a subset."""
    return _message(2, msgspec.json.encode(value))


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode())


def _message(number: int, content: bytes) -> bytes:
    """A length-delimited field: text and messages."""
    return bytes((*_varint(number << 3 | 2), *_varint(len(content)))) + content


def _varint(value: int) -> Iterable[int]:
    while value > 0x7F:
        yield value & 0x7F | 0x80
        value >>= 7
    yield value
