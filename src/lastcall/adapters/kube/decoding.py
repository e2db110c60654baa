"""One object as the server sent it: read as its shape, or, if it cannot be, at least which one it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec

from lastcall.errors import Unavailable

T = TypeVar("T")


class Key(NamedTuple):
    """Which object."""

    namespace: str
    name: str


class Metadata(msgspec.Struct, rename="camel", gc=False):
    """What every object has."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Meta(msgspec.Struct, gc=False):
    """An object of which nothing else is read."""

    metadata: Metadata


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Known(Generic[T]):
    """An object that could be read."""

    key: Key
    uid: str
    revision: str
    obj: T


@dataclass(frozen=True, slots=True)
class Unread:
    """One of which only this could be read, and why: something in it is not as its shape has it."""

    key: Key
    uid: str
    revision: str
    why: str


def decoded(raw: bytes | msgspec.Raw, shape: type[T], *, shared: bool) -> Known[T] | Unread:
    """``shared``: kept once for all in this process who know it. Unavailable if nobody can say which object it is.

    Objects as JSON come without ``managedFields``.
    """
    try:
        return _decoded_once(raw, shape) if shared else _decoded(raw, shape)
    except Unavailable as failure:
        metadata = read(raw, Meta).metadata
        if not metadata.name:
            raise
        return Unread(Key(metadata.namespace, metadata.name), metadata.uid, metadata.resource_version, str(failure))


def _decoded(raw: bytes | msgspec.Raw, shape: type[T]) -> Known[T]:
    obj = read(raw, shape)
    said = obj.get("metadata") if isinstance(obj, dict) else None  # where it is whole, it is not read twice
    if isinstance(said, dict):
        said.pop("managedFields", None)
        metadata = _named(said)
    else:
        metadata = read(raw, Meta).metadata
    return Known(Key(metadata.namespace, metadata.name), metadata.uid, metadata.resource_version, obj)


_SHARED: WeakValueDictionary[tuple[bytes, Any], Known[Any]] = WeakValueDictionary()
"""By a digest of what the server sent, and what that was read as; for as long as somebody knows it."""


def _decoded_once(raw: bytes | msgspec.Raw, shape: type[T]) -> Known[T]:
    place = (blake2b(raw, digest_size=16).digest(), shape)
    known: Known[T] | None = _SHARED.get(place)
    if known is None:
        known = _SHARED[place] = _decoded(raw, shape)
    return known


def _named(metadata: Mapping[str, Any]) -> Metadata:
    return Metadata(*(metadata.get(name, "") for name in ("name", "namespace", "uid", "resourceVersion")))


S = TypeVar("S")


def read(data: bytes | msgspec.Raw, type_: type[S]) -> S:
    """Unavailable if it cannot be."""
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, ValueError) as error:
        raise Unavailable(f"what the server sent cannot be read: {error}") from error
