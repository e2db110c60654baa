"""An informer: the objects of one resource, kept up to date; deletions missed during an outage are reported too."""

import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Generic, TypeVar

import msgspec

from lastcall.adapters.kube import api_errors
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.decoding import (
    DecodedObject,
    ObjectKey,
    PartialObject,
    UndecodableObject,
    decode_json,
    decode_object,
)
from lastcall.adapters.kube.resources import ApiResource
from lastcall.aio import timeout
from lastcall.errors import LastcallError, RevisionExpired, TooManyRequests, Unavailable
from lastcall.ports.node import Clock

__all__ = ["INACTIVITY_SECONDS", "ChangeKind", "Informer", "ObjectKey", "WatchChange"]

log = logging.getLogger(__name__)

T = TypeVar("T")

INACTIVITY_SECONDS = 150.0
"""Seconds of silence after which a watch is reopened: the server sends a bookmark about every minute."""

_SHORTEST = 1.0
"""Seconds: a watch that ends sooner counts as failed, so that reopening is always paced."""

_MOST_BYTES = 16 * 2**20
"""Largest event in bytes: etcd accepts no request of more than 1.5 MiB, and JSON adds little to it."""

_FIRST_WAIT, _LONGEST_WAIT, _CALM = 0.8, 30.0, 120.0
"""Backoff in seconds: first pause, longest pause, and the time without failure after which it starts over."""


class ChangeKind(Enum):
    """The kind of a change."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"
    """All existing objects have been reported; follows every list."""


@dataclass(frozen=True)
class WatchChange(Generic[T]):
    """``new`` is the object as it is now (deleted: as it was last), ``old`` as it was before; both None if SYNCED."""

    kind: ChangeKind
    key: ObjectKey
    new: T | None
    old: T | None = None


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Informer(Generic[T]):
    """Lists, then watches, without end; logs each failure and retries with exponential backoff.

    After ``410 Gone``, as an answer or as an event, it lists again and reports the differences to what it knows. An
    object that cannot be decoded is logged and skipped: its known state stays, and all others are still updated.
    ``random`` spreads the pauses and the ends of watches. Objects of a ``shared`` informer are decoded once for all in
    this process that watch them, and must not be changed: kubelets and controllers in one process have one copy of each
    pod. Objects as JSON come without ``managedFields``, which are half of their size, as in the informers of
    Kubernetes' own programs (``cache.TransformStripManagedFields``).
    """

    def __init__(
        self,
        client: Client,
        resource: ApiResource[T],
        *,
        clock: Clock,
        random: Random,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        inactivity: float = INACTIVITY_SECONDS,
        shared: bool = False,
    ) -> None:
        self._client = client
        self._resource = resource
        self._clock = clock
        self._random = random
        self._namespace, self._labels, self._fields = namespace, labels, fields
        self._inactivity = inactivity
        self._shared = shared
        self._known: dict[ObjectKey, DecodedObject[T]] = {}
        self._unread: dict[ObjectKey, str] = {}
        """Why objects cannot be decoded, as last logged."""
        self._revision = ""
        self._wait = _FIRST_WAIT
        self._mute = 0
        self.failure: LastcallError | None = None
        """Why the known objects may be out of date; None while they are current."""

    @property
    def revision(self) -> str:
        """The revision of the known objects; empty before the first list."""
        return self._revision

    @property
    def objects(self) -> Mapping[ObjectKey, T]:
        """All known objects by key: a copy."""
        return {key: known.obj for key, known in self._known.items()}

    def get(self, key: ObjectKey) -> T | None:
        """One known object."""
        known = self._known.get(key)
        return known.obj if known else None

    async def changes(self) -> AsyncGenerator[WatchChange[T], None]:
        """Yields every change once, in order. Never ends; close it to stop.

        Begins with the existing objects, unless ``list_changes`` was called before.
        """
        while True:
            begun, listed = self._clock.boottime(), not self._revision
            failure: LastcallError | None = None
            try:
                if listed:
                    for change in await self.list_changes():
                        yield change
                async with contextlib.aclosing(self._watch_changes()) as watch:
                    async for change in watch:
                        yield change
            except RevisionExpired as error:
                self._revision = ""
                if not listed:
                    continue
                failure = error
            except LastcallError as error:
                failure = error
            if failure is None and self._clock.boottime() - begun < _SHORTEST:
                failure = Unavailable("the watch ended at once")
            if failure is not None:
                await self._back_off(failure, begun)

    async def _back_off(self, error: LastcallError, begun: float) -> None:
        self.failure = error
        if self._clock.boottime() - begun > _CALM:
            self._wait = _FIRST_WAIT
        seconds = self._wait * (1 + self._random.random())
        self._wait = min(_LONGEST_WAIT, self._wait * 2)
        if isinstance(error, TooManyRequests):
            seconds = max(seconds, error.retry_after or 0.0)
        log.warning("watching %s: %s; again in %.1f s", self._resource.plural, error, seconds)
        await self._clock.sleep(seconds)

    # -- list ----------------------------------------------------------------------------------------------------------

    async def list_changes(self) -> Sequence[WatchChange[T]]:
        """Lists once, updates all known objects, and returns the changes, of which SYNCED is the last.

        For a caller that has to know why a first list fails: the error is raised and not logged.
        """
        found: dict[ObjectKey, DecodedObject[T]] = {}
        unread: dict[ObjectKey, UndecodableObject] = {}
        revision = ""
        pages = self._client.list_pages(
            self._resource, namespace=self._namespace, labels=self._labels, fields=self._fields
        )
        async with contextlib.aclosing(pages):
            async for page, revision in pages:  # noqa: B007  (the last one's is the list's)
                for item in page:
                    one = self._decode_one(item)
                    if isinstance(one, DecodedObject):
                        found[one.key] = one
                    else:
                        unread[one.key] = one
        found |= self._keep_undecodable(unread)
        changes = [
            WatchChange(ChangeKind.DELETED, key, known.obj, known.obj)
            for key, known in self._known.items()
            if key not in found or found[key].uid != known.uid
        ]
        for key, now in found.items():
            before = self._known.get(key)
            if before is None or before.uid != now.uid:
                changes.append(WatchChange(ChangeKind.ADDED, key, now.obj))
            elif before.revision != now.revision:
                changes.append(WatchChange(ChangeKind.MODIFIED, key, now.obj, before.obj))
        self._known, self._revision, self.failure = found, revision, None
        return [*changes, WatchChange(ChangeKind.SYNCED, ObjectKey("", ""), None)]

    def _keep_undecodable(self, unread: Mapping[ObjectKey, UndecodableObject]) -> Mapping[ObjectKey, DecodedObject[T]]:
        """Undecodable objects of a list keep their known state, if they have one; no change is reported."""
        for one in unread.values():
            self._warn_once(one)
        self._unread = {key: one.why for key, one in unread.items()}
        known = {key: self._known[key] for key in unread if key in self._known}
        return {key: before for key, before in known.items() if before.uid == unread[key].uid}

    def _warn_once(self, one: UndecodableObject) -> None:
        """Logs a warning, once for each object and reason."""
        if self._unread.get(one.key) != one.why:
            name = "/".join(filter(None, one.key))
            log.warning("watching %s: %s is passed over, %s", self._resource.plural, name, one.why)
            self._unread[one.key] = one.why

    # -- watch ---------------------------------------------------------------------------------------------------------

    async def _watch_changes(self) -> AsyncGenerator[WatchChange[T], None]:
        """The changes of one watch, until the server ends it or is silent for too long."""
        seconds = self._random.randint(300, 600)
        chunks = await self._client.watch(
            self._resource,
            self._revision,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            seconds=seconds,
        )
        rest = b""
        async with contextlib.aclosing(chunks):
            while True:
                try:
                    async with timeout(self._inactivity):
                        chunk = await anext(chunks)
                except TimeoutError:
                    self._count_silent_watch()
                    return
                except StopAsyncIteration:
                    return
                self.failure, self._mute = None, 0
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > _MOST_BYTES:
                    raise Unavailable(f"watching {self._resource.plural}: an event has more than {_MOST_BYTES} bytes")
                for line in lines:
                    if line and (change := self._apply_event(line)):
                        yield change

    def _count_silent_watch(self) -> None:
        """Counts watches without an event or bookmark; after the second in a row, the next step is a list.

        This happens after etcd was restored from a backup: a server sends a watch nothing older than its starting
        revision, and that revision comes again only after as many writes as were lost.
        """
        self._mute += 1
        if self._mute > 1:
            self._mute, self._revision = 0, ""

    def _apply_event(self, line: bytes) -> WatchChange[T] | None:
        event = decode_json(line, _WatchEvent)
        if event.type == "ERROR":
            self._revision = ""  # whatever the error is, only a list finds the missed changes
            raise api_errors.status_error(
                api_errors.read_status(bytes(event.object)) or api_errors.ApiStatus(message="an error without a Status")
            )
        if event.type == "BOOKMARK":
            self._revision = decode_json(event.object, PartialObject).metadata.resource_version
            return None
        now = self._decode_one(event.object)
        key, self._revision = now.key, now.revision
        if isinstance(now, UndecodableObject):
            return self._apply_undecodable(now, deleted=event.type == "DELETED")
        before = self._known.get(key)
        old = before.obj if before else None
        if event.type == "DELETED":
            self._known.pop(key, None)
            self._unread.pop(key, None)
            return WatchChange(ChangeKind.DELETED, key, now.obj, old) if before else None
        self._known[key] = now
        return WatchChange(ChangeKind.MODIFIED if before else ChangeKind.ADDED, key, now.obj, old)

    def _apply_undecodable(self, now: UndecodableObject, *, deleted: bool) -> WatchChange[T] | None:
        """The object keeps its known state, unless it was deleted or replaced by another one of its name."""
        if deleted:
            self._unread.pop(now.key, None)
        else:
            self._warn_once(now)
        before = self._known.get(now.key)
        if before is None or (before.uid == now.uid and not deleted):
            return None
        del self._known[now.key]
        return WatchChange(ChangeKind.DELETED, now.key, before.obj, before.obj)

    def _decode_one(self, raw: msgspec.Raw) -> DecodedObject[T] | UndecodableObject:
        return decode_object(raw, self._resource.shape, shared=self._shared)
