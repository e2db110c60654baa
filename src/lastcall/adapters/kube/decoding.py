"""One object as the server sent it: read as its shape, or, if it cannot be, at least which one it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec

from lastcall.errors import Unavailable

T = TypeVar("T")


class ObjectKey(NamedTuple):
    """Which object."""

    namespace: str
    name: str


class DecodedMetadata(msgspec.Struct, rename="camel", gc=False):
    """What every object has."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class PartialObject(msgspec.Struct, gc=False):
    """An object of which nothing else is read."""

    metadata: DecodedMetadata


@dataclass(frozen=True, slots=True, weakref_slot=True)
class DecodedObject(Generic[T]):
    """An object that could be read."""

    key: ObjectKey
    uid: str
    revision: str
    obj: T


@dataclass(frozen=True, slots=True)
class UndecodableObject:
    """One of which only this could be read, and why: something in it is not as its shape has it."""

    key: ObjectKey
    uid: str
    revision: str
    why: str


def decode_object(raw: bytes | msgspec.Raw, shape: type[T], *, shared: bool) -> DecodedObject[T] | UndecodableObject:
    """``shared``: kept once for all in this process who know it. Unavailable if nobody can say which object it is.

    Objects as JSON come without ``managedFields``.
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
    said = obj.get("metadata") if isinstance(obj, dict) else None  # where it is whole, it is not read twice
    if isinstance(said, dict):
        said.pop("managedFields", None)
        metadata = _metadata_from_json(said)
    else:
        metadata = decode_json(raw, PartialObject).metadata
    return DecodedObject(ObjectKey(metadata.namespace, metadata.name), metadata.uid, metadata.resource_version, obj)


_SHARED: WeakValueDictionary[tuple[bytes, Any], DecodedObject[Any]] = WeakValueDictionary()
"""By a digest of what the server sent, and what that was read as; for as long as somebody knows it."""


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
    """Unavailable if it cannot be."""
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, ValueError) as error:
        raise Unavailable(f"what the server sent cannot be read: {error}") from error
