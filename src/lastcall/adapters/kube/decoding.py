"""Decodes one object of the server into its shape; if that fails, at least its name and uid."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec

from lastcall.errors import Unavailable

T = TypeVar("T")


class ObjectKey(NamedTuple):
    """Namespace and name of an object."""

    namespace: str
    name: str


class DecodedMetadata(msgspec.Struct, rename="camel", gc=False):
    """The metadata that every object has."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class PartialObject(msgspec.Struct, gc=False):
    """An object of which only the metadata is read."""

    metadata: DecodedMetadata


@dataclass(frozen=True, slots=True, weakref_slot=True)
class DecodedObject(Generic[T]):
    """An object that was decoded."""

    key: ObjectKey
    uid: str
    revision: str
    obj: T


@dataclass(frozen=True, slots=True)
class UndecodableObject:
    """An object whose shape does not match: its key and metadata, and the reason."""

    key: ObjectKey
    uid: str
    revision: str
    why: str


def decode_object(raw: bytes | msgspec.Raw, shape: type[T], *, shared: bool) -> DecodedObject[T] | UndecodableObject:
    """Decodes an object; ``shared`` reuses the same decoded object in this process.

    Raises Unavailable if not even the object's key can be read. Objects as JSON come without ``managedFields``.
    """
    try:
        return _decode_shared(raw, shape) if shared else _decode_unshared(raw, shape)
    except Unavailable as failure:
        metadata = decode_json(raw, PartialObject).metadata
        if not metadata.name:
            raise
        return UndecodableObject(
            ObjectKey(metadata.namespace, metadata.name), metadata.uid, metadata.resource_version, str(failure)
        )


def _decode_unshared(raw: bytes | msgspec.Raw, shape: type[T]) -> DecodedObject[T]:
    obj = decode_json(raw, shape)
    said = obj.get("metadata") if isinstance(obj, dict) else None  # decode a JSON object once
    if isinstance(said, dict):
        said.pop("managedFields", None)
        metadata = _metadata_from_json(said)
    else:
        metadata = decode_json(raw, PartialObject).metadata
    return DecodedObject(ObjectKey(metadata.namespace, metadata.name), metadata.uid, metadata.resource_version, obj)


_SHARED: WeakValueDictionary[tuple[bytes, Any], DecodedObject[Any]] = WeakValueDictionary()
"""Decoded objects by a digest of the server's bytes, for as long as anything refers to them."""


def _decode_shared(raw: bytes | msgspec.Raw, shape: type[T]) -> DecodedObject[T]:
    place = (blake2b(raw, digest_size=16).digest(), shape)
    known: DecodedObject[T] | None = _SHARED.get(place)
    if known is None:
        known = _SHARED[place] = _decode_unshared(raw, shape)
    return known


def _metadata_from_json(metadata: Mapping[str, Any]) -> DecodedMetadata:
    return DecodedMetadata(*(metadata.get(name, "") for name in ("name", "namespace", "uid", "resourceVersion")))


S = TypeVar("S")


def decode_json(data: bytes | msgspec.Raw, type_: type[S]) -> S:
    """Decodes JSON; raises Unavailable if it is malformed."""
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, ValueError) as error:
        raise Unavailable(f"what the server sent cannot be read: {error}") from error
