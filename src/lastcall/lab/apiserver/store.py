"""What the API server knows: objects by key, every change with its revision, and who waits for changes.

One object is kept as the JSON that is sent to clients, without ``kind`` and ``apiVersion``: ten thousand pods are some
tens of MB, a watch with many readers encodes nothing twice, and nobody can change by accident what others read.
"""

import bisect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import msgspec

from lastcall.aio import Signal
from lastcall.lab.apiserver.request import Object

HISTORY = 10_000
"""Changes that are kept for watches and old lists, unless somebody compacts."""


class Key(NamedTuple):
    """Where an object lies. ``resource`` is ``pods`` or ``deployments.apps``; no namespace: the empty string."""

    resource: str
    namespace: str
    name: str


class Kind(Enum):
    """Of a change."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of one object. ``labels`` and ``fields`` are what selectors can ask for."""

    key: Key
    revision: int
    data: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    def object(self) -> Object:
        """A copy of one's own, without kind and apiVersion."""
        decoded: Object = msgspec.json.decode(self.data)
        return decoded


@dataclass(frozen=True, slots=True)
class Change:
    """``new`` is the object as it is now, with the revision of the change; when deleted, as it was last."""

    kind: Kind
    new: Stored
    old: Stored | None

    @property
    def revision(self) -> int:
        """The revision that the change made."""
        return self.new.revision


class Outdated(Exception):
    """The object has another revision than expected."""


class Compacted(Exception):
    """The changes since that revision are not kept any more."""


@dataclass
class Store:
    """Everything happens at once, between two awaits. ``on_change`` hears every change before anybody else."""

    fields_of: Callable[[str, Object], Mapping[str, str]] = lambda resource, obj: {}
    history: int = HISTORY
    on_change: Callable[[Change], None] = lambda change: None
    revision: int = 0
    compacted: int = 0
    _objects: dict[Key, Stored] = field(default_factory=dict)
    _order: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    _changes: list[Change] = field(default_factory=list)
    _changed: dict[str, Signal] = field(default_factory=dict)

    def get(self, key: Key) -> Stored | None:
        """The object as it is now."""
        return self._objects.get(key)

    def put(self, key: Key, obj: Object, *, expected: int | None) -> Stored:
        """A new object (``expected`` None) or a new version of the one with that revision; Outdated otherwise."""
        old = self._objects.get(key)
        if (old.revision if old else None) != expected:
            raise Outdated
        new = self._stored(key, obj, self.revision + 1)
        self._apply(Change(Kind.MODIFIED if old else Kind.ADDED, new, old))
        return new

    def delete(self, key: Key, obj: Object, *, expected: int) -> Stored:
        """Removes the object; ``obj`` is what watches are told it was last. Outdated if it has changed."""
        old = self._objects.get(key)
        if old is None or old.revision != expected:
            raise Outdated
        last = self._stored(key, obj, self.revision + 1)
        self._apply(Change(Kind.DELETED, last, old))
        return last

    def objects(self, resource: str, namespace: str = "") -> Iterator[Stored]:
        """Those of one resource as they are now, by namespace and name."""
        order = self._order.get(resource, [])
        start = bisect.bisect_left(order, (namespace, ""))
        for place, name in order[start:]:
            if namespace and place != namespace:
                break
            yield self._objects[Key(resource, place, name)]

    def objects_at(self, resource: str, namespace: str, revision: int) -> list[Stored]:
        """Those of one resource as they were at ``revision``; Compacted if that is too long ago."""
        if revision < self.compacted:
            raise Compacted
        found = {stored.key: stored for stored in self.objects(resource, namespace)}
        for change in reversed(self._since(revision)):
            key = change.new.key
            if key.resource != resource or (namespace and key.namespace != namespace):
                continue
            if change.old:
                found[key] = change.old
            else:
                found.pop(key, None)
        return [found[key] for key in sorted(found)]

    def count(self, resource: str) -> int:
        """How many there are."""
        return len(self._order.get(resource, ()))

    def changes(self, since: int) -> Sequence[Change]:
        """Those after revision ``since``, oldest first; Compacted if some of them are not kept any more."""
        if since < self.compacted:
            raise Compacted
        return self._since(since)

    async def watch(self, resource: str, since: int) -> AsyncIterator[Sequence[Change]]:
        """The changes of one resource after ``since``, as they happen, in batches.

        Compacted when the reader has fallen too far behind. A batch is never empty.
        """
        signal = self._changed.setdefault(resource, Signal())
        while True:
            changes = [change for change in self.changes(since) if change.new.key.resource == resource]
            if changes:
                since = changes[-1].revision
                yield changes
            else:
                since = max(since, self.revision)
                await signal.next()

    def compact(self, revision: int) -> None:
        """Forgets the changes up to ``revision``."""
        self._changes = list(self._since(revision))
        self.compacted = max(self.compacted, min(revision, self.revision))

    def load(self, revision: int, objects: Sequence[Stored]) -> None:
        """Begins with what an earlier life has left; its history is not known."""
        self.revision = self.compacted = revision
        for stored in objects:
            self._objects[stored.key] = stored
            bisect.insort(self._order.setdefault(stored.key.resource, []), stored.key[1:])

    def stored(self, key: Key, revision: int, data: bytes) -> Stored:
        """Of what was written down."""
        obj: Object = msgspec.json.decode(data)
        return Stored(key, revision, data, _labels(obj), self.fields_of(key.resource, obj))

    def _stored(self, key: Key, obj: Object, revision: int) -> Stored:
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(revision)
        data = msgspec.json.encode({name: value for name, value in obj.items() if name not in ("kind", "apiVersion")})
        return Stored(key, revision, data, dict(_labels(obj)), self.fields_of(key.resource, obj))

    def _apply(self, change: Change) -> None:
        key = change.new.key
        order = self._order.setdefault(key.resource, [])
        if change.kind is Kind.DELETED:
            del self._objects[key]
            del order[bisect.bisect_left(order, key[1:])]
        else:
            self._objects[key] = change.new
            if change.kind is Kind.ADDED:
                bisect.insort(order, key[1:])
        self.revision = change.revision
        self._changes.append(change)
        if len(self._changes) >= 2 * self.history:
            self.compact(self._changes[-self.history].revision)
        self.on_change(change)
        if signal := self._changed.get(key.resource):
            signal.set()

    def _since(self, revision: int) -> list[Change]:
        return self._changes[bisect.bisect_right(self._changes, revision, key=lambda change: change.revision) :]


def _labels(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}
