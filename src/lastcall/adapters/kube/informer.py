"""The objects of one resource as they are, kept right for ever: what is deleted while nobody looked is told too."""

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
"""Silence after which a watch is opened anew: the server sends a bookmark about every minute."""

_SHORTEST = 1.0
"""Seconds: a watch that ends sooner counts as failed, so that nobody is asked again and again without a pause."""

_MOST_BYTES = 16 * 2**20
"""Of one event: etcd takes no request of more than 1.5 MiB, and JSON makes little more of it."""

_FIRST_WAIT, _LONGEST_WAIT, _CALM = 0.8, 30.0, 120.0
"""Seconds: the first pause after a failure, the longest, and after which time without one it is the first again."""


class ChangeKind(Enum):
    """Of a change."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"
    """All that is there has been told; comes after every list."""


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
    """Lists, then watches, for ever; every failure is logged and tried again with growing pauses.

    After ``410 Gone``, as an answer or as an event, it lists again and tells what differs from what it knows. One object
    that cannot be read is told of in the log and passed over: of what was known nothing changes by it, and all others are heard of.
    ``random`` spreads the pauses and the ends of watches. What is ``shared`` is kept once for all in this process who
    watch it, and nobody changes it: kubelets and controllers in one process have one copy of each pod. Objects as JSON
    come without ``managedFields``, which are half of them, as in the informers of Kubernetes' own programs
    (``cache.TransformStripManagedFields``).
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
        """Why what is there cannot be read, as it was told last."""
        self._revision = ""
        self._wait = _FIRST_WAIT
        self._mute = 0
        self.failure: LastcallError | None = None
        """Why it does not know how things are now; None while it does."""

    @property
    def revision(self) -> str:
        """The revision at which everything is as it is known; empty before the first list."""
        return self._revision

    @property
    def objects(self) -> Mapping[ObjectKey, T]:
        """All that is known, by key: a copy."""
        return {key: known.obj for key, known in self._known.items()}

    def get(self, key: ObjectKey) -> T | None:
        """One object as it is known."""
        known = self._known.get(key)
        return known.obj if known else None

    async def changes(self) -> AsyncGenerator[WatchChange[T], None]:
        """Every change once, in order, beginning with what is there. Never ends; close it to give it up."""
        while True:
            begun, listed = self._clock.boottime(), not self._revision
            failure: LastcallError | None = None
            try:
                if listed:
                    for change in await self._list_changes():
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

    async def _list_changes(self) -> Sequence[WatchChange[T]]:
        """What a list says that was not known. Everything is known by then; the changes are to be told."""
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
        """Of what is listed and cannot be read, that which was known: as it was. Nothing is told of any other."""
        for one in unread.values():
            self._warn_once(one)
        self._unread = {key: one.why for key, one in unread.items()}
        known = {key: self._known[key] for key in unread if key in self._known}
        return {key: before for key, before in known.items() if before.uid == unread[key].uid}

    def _warn_once(self, one: UndecodableObject) -> None:
        """Once for each object and reason."""
        if self._unread.get(one.key) != one.why:
            name = "/".join(filter(None, one.key))
            log.warning("watching %s: %s is passed over, %s", self._resource.plural, name, one.why)
            self._unread[one.key] = one.why

    # -- watch ---------------------------------------------------------------------------------------------------------

    async def _watch_changes(self) -> AsyncGenerator[WatchChange[T], None]:
        """The changes of one watch, until the server ends it or has been silent for too long."""
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
        """After the second watch in a row that has told nothing, no bookmark either, only a list says how things are.

        So it is after etcd was restored from a backup: a server tells a watch nothing that is older than the revision from
        which it was to go on, and that comes again only after as many writes as were lost.
        """
        self._mute += 1
        if self._mute > 1:
            self._mute, self._revision = 0, ""

    def _apply_event(self, line: bytes) -> WatchChange[T] | None:
        event = decode_json(line, _WatchEvent)
        if event.type == "ERROR":
            self._revision = ""  # whatever it is, only a list tells what has been missed
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
        """It stays as it was known, unless that is gone: deleted, or another object has its name."""
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
