"""The change log of one resource, and its readers.

A reader is only a position in the log: a thousand watches cost a thousand numbers, and a slow one delays no other. A
reader that falls behind the oldest kept change gets an error. A waiting reader is never behind, because nothing of
interest to it has happened.
"""

import asyncio
import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import msgspec

from lastcall_lab.apiserver.storage.change_waiters import ChangeWaiters, Interest
from lastcall_lab.apiserver.values.request import Object

_SLACK = 1000
"""Surplus changes, so that old ones are dropped in batches."""


class StorageKey(NamedTuple):
    """The key of an object. ``resource`` is ``pods`` or ``deployments.apps``; cluster-scoped ones have no namespace."""

    resource: str
    namespace: str
    name: str


class StoredChangeKind(Enum):
    """The kind of a change."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One version of an object. ``labels`` and ``fields`` are for selectors; empty fields are omitted."""

    key: StorageKey
    revision: int
    data: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    def to_object(self) -> Object:
        """A private copy, without kind and apiVersion."""
        decoded: Object = msgspec.json.decode(self.data)
        return decoded


@dataclass(frozen=True, slots=True)
class StoredChange:
    """``new`` is the object with the revision of the change; for a deletion, its last state."""

    kind: StoredChangeKind
    new: StoredObject
    old: StoredObject | None

    @property
    def revision(self) -> int:
        """The revision that the change made."""
        return self.new.revision

    def as_deleted(self) -> StoredObject:
        """The old state with the revision of the change, for watches whose selection the object leaves."""
        assert self.old
        obj = self.old.to_object()
        obj["metadata"]["resourceVersion"] = str(self.revision)
        return StoredObject(self.new.key, self.revision, msgspec.json.encode(obj), self.old.labels, self.old.fields)


class Compacted(Exception):
    """The changes since that revision have been compacted."""


@dataclass
class ChangeLog:
    """The newest changes of one resource, at least ``history`` of them."""

    history: int
    compacted: int = 0
    """The revision up to which changes have been dropped."""
    _changes: list[StoredChange] = field(default_factory=list)
    _dropped: int = 0
    waiting: ChangeWaiters = field(default_factory=ChangeWaiters)

    @property
    def end(self) -> int:
        """The position of the next change."""
        return self._dropped + len(self._changes)

    def append(self, change: StoredChange) -> None:
        """Appends a change and wakes its waiters."""
        place, old = self.end, change.old
        self._changes.append(change)
        if len(self._changes) >= self.history + _SLACK:
            self._drop(len(self._changes) - self.history)
        self.waiting.wake(place, [change.new.fields, old.fields] if old else [change.new.fields])

    def changes_since(self, revision: int) -> Sequence[StoredChange]:
        """The changes after ``revision``, oldest first. Compacted if some of them are no longer kept."""
        if revision < self.compacted:
            raise Compacted
        return self._changes[self._after(revision) :]

    def open_feed(self, since: int, interest: Interest = None) -> "ChangeFeed":
        """A reader from that revision on. Compacted if it is no longer kept."""
        if since < self.compacted:
            raise Compacted
        return ChangeFeed(self, self._dropped + self._after(since), since, interest)

    def compact(self, revision: int) -> None:
        """Forgets the changes up to ``revision``."""
        if gone := self._after(revision):
            self._drop(gone)
        self.compacted = max(self.compacted, revision)

    def read(self, place: int, most: int) -> Sequence[StoredChange]:
        """Up to ``most`` changes from position ``place`` on. Compacted if it is no longer kept."""
        if place < self._dropped:
            raise Compacted
        start = place - self._dropped
        return self._changes[start : start + most]

    def _after(self, revision: int) -> int:
        return bisect.bisect_right(self._changes, revision, key=lambda change: change.revision)

    def _drop(self, count: int) -> None:
        self.compacted = self._changes[count - 1].revision
        del self._changes[:count]
        self._dropped += count


class ChangeFeed:
    """One reader of a log; ``changes_since`` is its start revision, ``interest`` selects the changes that wake it."""

    def __init__(self, log: ChangeLog, place: int, since: int, interest: Interest) -> None:
        self.since = since
        self._log = log
        self._place = place
        self._interest = interest
        self._future: asyncio.Future[int] | None = None

    def take(self, most: int) -> Sequence[StoredChange]:
        """The next changes of interest, at most ``most``; empty if there are none.

        Compacted if they are no longer kept. After a wait, they begin with the one that ended it.
        """
        if self._future:
            if not self._future.done():
                return ()
            self._place, self._future = self._future.result(), None
        while changes := self._log.read(self._place, most):
            self._place += len(changes)
            if found := [change for change in changes if self._concerns(change)]:
                return found
        return ()

    def _concerns(self, change: StoredChange) -> bool:
        """A feed that starts in the future ignores earlier changes."""
        if change.revision <= self.since:
            return False
        if self._interest is None:
            return True
        field, value = self._interest
        return change.new.fields.get(field, "") == value or (
            change.old is not None and change.old.fields.get(field, "") == value
        )

    def wait_for_change(self) -> "asyncio.Future[int]":
        """A future for the next change of possible interest; call it when ``take`` returned none."""
        if self._future is None and self._place == self._log.end:
            self._future = self._log.waiting.add(self._interest)
        elif self._future is None:
            self._future = asyncio.get_running_loop().create_future()
            self._future.set_result(self._place)
        return self._future

    def wake(self) -> None:
        """Ends the reader's wait without a change."""
        if self._future and not self._future.done():
            self._log.waiting.remove(self._interest, self._future)
            self._future.set_result(self._place)

    def close(self) -> None:
        """Removes the reader."""
        if self._future and not self._future.done():
            self._log.waiting.remove(self._interest, self._future)
