"""The API server's store: objects by key, changes by revision, and the readers of changes.

Each object is kept as the JSON for clients, without ``kind`` and ``apiVersion``: ten thousand pods take some tens of
MB, a watch with many readers encodes nothing twice, and no code can accidentally change what others read.
"""

import bisect
import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from lastcall.errors import Unavailable
from lastcall_lab.apiserver.storage import field_index
from lastcall_lab.apiserver.storage.change_log import (
    ChangeFeed,
    ChangeLog,
    Compacted,
    StorageKey,
    StoredChange,
    StoredChangeKind,
    StoredObject,
)
from lastcall_lab.apiserver.storage.change_waiters import Interest
from lastcall_lab.apiserver.storage.field_index import FieldIndex
from lastcall_lab.apiserver.values.request import Object

__all__ = [
    "ChangeFeed",
    "Compacted",
    "Journal",
    "RevisionConflict",
    "StorageKey",
    "Store",
    "StoredChange",
    "StoredChangeKind",
    "StoredObject",
]

HISTORY = 10_000
"""The number of changes per resource that are kept for watches and old lists, unless compacted earlier."""

Place = tuple[str, str]
"""Namespace with a slash, and name: objects have the order of their paths, as in etcd."""

FIRST: Place = ("", "")
"""The place before all objects."""


def place_of(key: StorageKey) -> Place:
    """The position of an object among those of its resource."""
    return sys.intern(f"{key.namespace}/"), key.name


class RevisionConflict(Exception):
    """The object has another revision than expected."""


class Journal(Protocol):
    """Persists changes."""

    def append(self, change: StoredChange) -> None:
        """Queues a change at once; it becomes durable later."""
        ...

    async def wait_durable(self, revision: int) -> None:
        """Returns when all changes up to ``revision`` are durable. Unavailable if they were reverted."""
        ...

    def is_lost(self, revision: int) -> bool:
        """Whether the change of that revision was reverted (``Store.undo``)."""
        ...


@dataclass
class Store:
    """Operations are atomic: none of them awaits. ``on_change`` is called with every change and may write."""

    fields_of: Callable[[str, Object], Mapping[str, str]] = lambda resource, obj: {}
    history: int = HISTORY
    on_change: Callable[[StoredChange], None] = lambda change: None
    journal: Journal | None = None
    revision: int = 0
    compacted: int = 0
    _objects: dict[str, dict[Place, StoredObject]] = field(default_factory=dict)
    _order: dict[str, list[Place]] = field(default_factory=dict)
    _logs: dict[str, ChangeLog] = field(default_factory=dict)
    _indexes: dict[str, FieldIndex] = field(
        default_factory=lambda: {name: FieldIndex(of) for name, of in field_index.FIELDS.items()}
    )

    def get(self, key: StorageKey) -> StoredObject | None:
        """The current object."""
        return self._objects.get(key.resource, {}).get(place_of(key))

    def put(self, key: StorageKey, obj: Object, *, expected: int | None) -> StoredObject:
        """Writes a new object (``expected`` None), or a new version of the one with that revision.

        RevisionConflict otherwise.
        """
        old = self.get(key)
        if (old.revision if old else None) != expected:
            raise RevisionConflict
        new = self._make_stored(key, obj, self.revision + 1)
        self._apply(StoredChange(StoredChangeKind.MODIFIED if old else StoredChangeKind.ADDED, new, old))
        return new

    def delete(self, key: StorageKey, obj: Object, *, expected: int) -> StoredObject:
        """Removes the object; ``obj`` is its last state for watches. RevisionConflict if it has changed."""
        old = self.get(key)
        if old is None or old.revision != expected:
            raise RevisionConflict
        last = self._make_stored(key, obj, self.revision + 1)
        self._apply(StoredChange(StoredChangeKind.DELETED, last, old))
        return last

    def objects(
        self, resource: str, namespace: str = "", after: Place = FIRST, interest: Interest = None
    ) -> Sequence[StoredObject]:
        """The current objects of a resource after ``after``, in order. May omit objects without ``interest``."""
        found = self._objects.get(resource)
        if not found:  # each write asks for webhooks and policies, and most clusters have none
            return []
        order = self._places(resource, namespace, interest)
        start, end = bisect.bisect_right(order, after), len(order)
        if namespace:
            start = max(start, bisect.bisect_left(order, (f"{namespace}/", "")))
            end = bisect.bisect_left(order, (f"{namespace}0", ""))  # "0" is the character after "/"
        return [found[one] for one in order[start:end]]

    def objects_at(self, resource: str, namespace: str, revision: int, after: Place = FIRST) -> Sequence[StoredObject]:
        """The objects at ``revision``; Compacted if that revision is no longer kept."""
        if revision < self.compacted:
            raise Compacted
        changes = self._log(resource).changes_since(revision)
        if not changes:
            return self.objects(resource, namespace, after)
        found = {stored.key: stored for stored in self.objects(resource, namespace, after)}
        for change in reversed(changes):
            key = change.new.key
            if place_of(key) <= after or (namespace and key.namespace != namespace):
                continue
            if change.old:
                found[key] = change.old
            else:
                found.pop(key, None)
        return sorted(found.values(), key=lambda stored: place_of(stored.key))

    def count(self, resource: str) -> int:
        """The number of objects."""
        return len(self._order.get(resource, ()))

    def open_feed(self, resource: str, since: int, interest: Interest = None) -> ChangeFeed:
        """The changes of a resource after ``changes_since``, as they happen. Compacted if they are no longer kept.

        The reader gets those of ``interest``.
        """
        if since < self.compacted:
            raise Compacted
        return self._log(resource).open_feed(since, interest)

    def oldest_revision(self, resource: str) -> int:
        """The revision since which the changes of a resource are kept."""
        return max(self.compacted, self._log(resource).compacted)

    async def wait_durable(self, revision: int) -> None:
        """Returns when the changes up to ``revision`` are durable; at once without a journal."""
        if self.journal:
            await self.journal.wait_durable(revision)

    async def wait_durable_changes(self, changes: Sequence[StoredChange]) -> Sequence[StoredChange]:
        """Waits like ``wait_durable``; returns the changes that were not reverted."""
        journal = self.journal
        if journal is None or not changes:
            return changes
        with contextlib.suppress(Unavailable):
            await journal.wait_durable(changes[-1].revision)
        return [one for one in changes if not journal.is_lost(one.revision)]

    def undo(self, changes: Sequence[StoredChange]) -> int:
        """Reverts changes that the journal could not write; returns the resulting revision.

        Each object becomes what it was before the first of them. These are changes of their own, visible in the history
        and not written to the journal.
        """
        before: dict[StorageKey, StoredObject | None] = {}
        for change in changes:
            before.setdefault(change.new.key, change.old)
        for key, old in reversed(before.items()):
            self._restore(key, old)
        return self.revision

    def backup(self) -> Mapping[StorageKey, StoredObject]:
        """All current objects."""
        return {one.key: one for objects in self._objects.values() for one in objects.values()}

    def restore(self, backup: Mapping[StorageKey, StoredObject]) -> None:
        """Restores a backup in new revisions, like ``etcdutl snapshot restore --bump-revision --mark-compacted``."""
        for key in [key for key in self.backup() if key not in backup]:
            self._restore(key, None)
        for key, old in backup.items():
            now = self.get(key)
            if now is None or now.revision != old.revision:
                self._restore(key, old)
        self.compact(self.revision)

    def _restore(self, key: StorageKey, old: StoredObject | None) -> None:
        now = self.get(key)
        if old is not None:
            restored = self._make_stored(key, old.to_object(), self.revision + 1)
            self._apply(
                StoredChange(StoredChangeKind.MODIFIED if now else StoredChangeKind.ADDED, restored, now),
                journaled=False,
            )
        elif now is not None:
            last = self._make_stored(key, now.to_object(), self.revision + 1)
            self._apply(StoredChange(StoredChangeKind.DELETED, last, now), journaled=False)

    def compact(self, revision: int) -> None:
        """Compacts the changes up to ``revision``."""
        self.compacted = max(self.compacted, min(revision, self.revision))
        for log in self._logs.values():
            log.compact(self.compacted)

    def load(self, revision: int, objects: Iterable[tuple[StorageKey, int, bytes]]) -> None:
        """Loads persisted keys, revisions and JSON, without their history."""
        self.revision = self.compacted = revision
        for key, at, data in objects:
            self._objects.setdefault(key.resource, {})[place_of(key)] = self._restore_object(key, at, data)
            self._order.setdefault(key.resource, []).append(place_of(key))
        for order in self._order.values():
            order.sort()
        self._build()

    def describe_fields(self, fields_of: Callable[[str, Object], Mapping[str, str]]) -> None:
        """Sets the function for the selectable fields of existing and future objects."""
        self.fields_of = fields_of
        for objects in self._objects.values():
            for where, stored in objects.items():
                objects[where] = self._restore_object(stored.key, stored.revision, stored.data)
        self._build()

    def _build(self) -> None:
        """Rebuilds all indexes."""
        for name, old in self._indexes.items():
            self._indexes[name] = FieldIndex(old.field)
            for where, stored in self._objects.get(name, {}).items():
                self._indexes[name].add(where, stored.fields)

    def _log(self, resource: str) -> ChangeLog:
        log = self._logs.get(resource)
        if log is None:
            log = self._logs[resource] = ChangeLog(self.history)
        return log

    def _restore_object(self, key: StorageKey, revision: int, data: bytes) -> StoredObject:
        obj: Object = msgspec.json.decode(data)
        return StoredObject(key, revision, data, _labels(obj), self.fields_of(key.resource, obj))

    def _make_stored(self, key: StorageKey, obj: Object, revision: int) -> StoredObject:
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(revision)
        data = msgspec.json.encode({name: value for name, value in obj.items() if name not in ("kind", "apiVersion")})
        data = bytes(memoryview(data))  # the encoder's buffer is up to 50 % larger than its content
        return StoredObject(key, revision, data, _labels(obj), self.fields_of(key.resource, obj))

    def _apply(self, change: StoredChange, *, journaled: bool = True) -> None:
        key, where = change.new.key, place_of(change.new.key)
        order, objects = self._order.setdefault(key.resource, []), self._objects.setdefault(key.resource, {})
        if change.kind is StoredChangeKind.DELETED:
            del objects[where]
            del order[bisect.bisect_left(order, where)]
        else:
            objects[where] = change.new
            if change.kind is StoredChangeKind.ADDED:
                bisect.insort(order, where)
        self._keep_found(where, change)
        self.revision = change.revision
        if self.journal and journaled:
            self.journal.append(change)
        self._log(key.resource).append(change)
        self.on_change(change)

    def _places(self, resource: str, namespace: str, interest: Interest) -> Sequence[Place]:
        order = self._order.get(resource, ())
        if interest is None:
            return order
        field, value = interest
        one_place = namespace or not order or order[0][0] == "/"  # cluster-scoped objects are at "/"
        if field == "metadata.name" and one_place:
            where = (f"{namespace}/", value)
            return [where] if where in self._objects.get(resource, {}) else ()
        indexed = self._indexes.get(resource)
        return indexed.find_places(value) if indexed and indexed.field == field else order

    def _keep_found(self, where: Place, change: StoredChange) -> None:
        """Updates the index of its resource, if there is one."""
        indexed = self._indexes.get(change.new.key.resource)
        if indexed is None:
            return
        if change.old:
            indexed.remove(where, change.old.fields)
        if change.kind is not StoredChangeKind.DELETED:
            indexed.add(where, change.new.fields)


def _labels(obj: Object) -> Mapping[str, str]:
    """A copy; equal labels of thousands of objects share one instance."""
    labels = obj["metadata"].get("labels") or {}
    return {sys.intern(name): sys.intern(value) for name, value in labels.items()}
