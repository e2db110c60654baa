"""Decodes messages in Kubernetes' protobuf to their JSON form.

An envelope (``runtime.Unknown``) after four magic bytes names the kind. Only decoding is needed, because every client
accepts JSON responses. The messages come from the published ``generated.proto`` files (``tools/generate_protobuf.sh``).
"""

import base64
import functools
import gzip
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import resources
from typing import Any, NamedTuple

import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from lastcall_lab.apiserver.values.request import Object

_MAGIC = b"k8s\x00"
_META = "k8s.io.apimachinery.pkg.apis.meta.v1"
_UNKNOWN = "k8s.io.apimachinery.pkg.runtime.Unknown"


class InvalidProtobuf(ValueError):
    """The body is no valid envelope, or its kind is unknown."""


class _Field(NamedTuple):
    """From Go's sources: the JSON name, empty for an inlined field."""

    name: str
    pointer: bool


class _Library(NamedTuple):
    pool: descriptor_pool.DescriptorPool
    fields: Mapping[str, Mapping[int, _Field]]

    def message(self, name: str) -> Message:
        """An empty message; KeyError if the type does not exist."""
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))()


def decode_envelope(body: bytes) -> Object:
    """The object in an envelope, with its kind and apiVersion. InvalidProtobuf if it is invalid."""
    if not body.startswith(_MAGIC):
        raise InvalidProtobuf("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    library = _library()
    envelope = _parse_message(library, _UNKNOWN, body[len(_MAGIC) :])
    api_version, kind = envelope.typeMeta.apiVersion, envelope.typeMeta.kind  # type: ignore[attr-defined]
    for name in (f"{_package(api_version)}.{kind}", f"{_META}.{kind}"):
        try:
            message = _parse_message(library, name, envelope.raw)  # type: ignore[attr-defined]
        except KeyError:
            continue
        return {"kind": kind, "apiVersion": api_version, **_object(library, message)}
    raise InvalidProtobuf(f'no kind "{kind}" is registered for version "{api_version}"')


@functools.cache
def _library() -> _Library:
    packed = resources.files("lastcall_lab.apiserver").joinpath("data/protobuf.json.gz").read_bytes()
    content = msgspec.json.decode(gzip.decompress(packed))
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(content["descriptors"])).file:
        pool.Add(file)
    fields = {
        message: {int(number): _Field(*facts) for number, facts in said.items()}
        for message, said in content["fields"].items()
    }
    return _Library(pool, fields)


def _parse_message(library: _Library, name: str, data: bytes) -> Message:
    message = library.message(name)
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise InvalidProtobuf(str(error)) from None
    return message


def _package(api_version: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"k8s.io.api.{group.partition('.')[0] or 'core'}.{version}"


def _object(library: _Library, message: Message) -> Object:
    known = library.fields.get(message.DESCRIPTOR.full_name, {})
    found: Object = {}
    for field, value in message.ListFields():
        said = known.get(field.number, _Field(field.name, pointer=False))
        content = _value(library, field, value)
        if not said.name:
            found.update(content)
        elif content is not None and (said.pointer or _says_something(content)):
            found[said.name] = content
    return found


def _says_something(content: Any) -> bool:
    """In Go a zero that is no pointer means no value; an empty struct is a value."""
    return isinstance(content, dict) or content not in ("", 0, False, [])


def _value(library: _Library, field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        kind = field.message_type.fields_by_name["value"]
        return {key: _one(library, kind, value[key]) for key in value}
    if isinstance(value, Message):
        return _message(library, value)
    if isinstance(value, str | bytes | int | float):
        return _one(library, field, value)
    return [_one(library, field, one) for one in value]


def _one(library: _Library, field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, Message):
        return _message(library, value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _message(library: _Library, message: Any) -> Any:
    special = _SPECIAL.get(message.DESCRIPTOR.full_name)
    return special(message) if special else _object(library, message)


def _time(message: Any) -> str | None:
    if not message.seconds:
        return None
    return datetime.fromtimestamp(message.seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(message: Any) -> str | None:
    if not message.seconds:
        return None
    moment = datetime.fromtimestamp(message.seconds + message.nanos // 1000 / 1e6, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _raw(message: Any) -> Any:
    return msgspec.json.decode(message.raw) if message.raw else None


_SPECIAL: Mapping[str, Callable[[Any], Any]] = {
    f"{_META}.Time": _time,
    f"{_META}.MicroTime": _micro_time,
    f"{_META}.FieldsV1": lambda message: msgspec.json.decode(message.Raw) if message.Raw else {},
    f"{_META}.Duration": lambda message: f"{message.duration / 1e9:g}s",
    "k8s.io.apimachinery.pkg.api.resource.Quantity": lambda message: message.string,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": lambda message: (
        message.strVal if message.type == 1 else message.intVal
    ),
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw,
}
