"""Watches: the changes since a revision, filtered by selectors."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from lastcall.aio import wait_any
from lastcall.errors import Unavailable
from lastcall.ports.node import Clock
from lastcall_lab.apiserver.registry.reads import ObjectSelection, parse_revision, select_objects
from lastcall_lab.apiserver.routing import list_options
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.storage.store import (
    ChangeFeed,
    Compacted,
    Store,
    StoredChange,
    StoredChangeKind,
    StoredObject,
)
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object

BATCH = 8
"""The maximum batch size, which limits the memory that a slow reader holds."""

SHORTEST = 1800.0
"""The minimum duration of a watch without timeoutSeconds; at most twice as long (``--min-request-timeout``)."""


class WatchEvent(NamedTuple):
    """One event of a watch: an object, a bookmark (a ``revision``), or an error."""

    type: str
    stored: StoredObject | None = None
    revision: int = 0
    initial: bool = False
    """On a bookmark: marks the end of the initial events."""
    error: Object | None = None


@dataclass
class WatchSchedule:
    """The bookmarks and the end of a watch that began at ``start`` (pure; boottime).

    Like the API server's watch cache, it sends a bookmark soon after the initial events, every minute, and two seconds
    before the end, so that clients know a revision to resume from (``cacheWatcher.nextBookmarkTime``).
    """

    start: float
    end: float
    bookmarks: bool
    initial: bool

    def __post_init__(self) -> None:
        first = self.start + 0.5 if self.initial else float("inf")
        self.bookmark = min(first, self._jittered_end(self.start)) if self.bookmarks else float("inf")

    def schedule_bookmark(self, now: float) -> None:
        """Called after a bookmark; sets the time of the next one."""
        self.bookmark = self._jittered_end(now)

    def _jittered_end(self, now: float) -> float:
        last = self.end - 2
        return min(now + 60, last) if last > now else float("inf")


class Watcher:
    """Opens watches on the store."""

    def __init__(self, store: Store, clock: Clock, random: Random) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._open: dict[ChangeFeed, WatchSchedule] = {}

    def hang_up(self) -> None:
        """Ends all watches at once because the server stops."""
        for feed, table in self._open.items():
            table.end = -math.inf
            feed.wake()

    def open(self, context: RequestContext) -> AsyncIterator[Sequence[WatchEvent]]:
        """The events in batches, until the reader closes the watch or its time ends.

        ApiError at once for invalid parameters; a compacted revision is reported as an event.
        """
        options = list_options.read_list_options(context.request)
        chosen = select_objects(context, options)
        revision = parse_revision(options.revision)
        now = self._clock.boottime()
        seconds = options.timeout or SHORTEST * (1 + self._random.random())
        initial = options.initial or (options.initial is None and options.accepts_any_revision)
        table = WatchSchedule(now, now + seconds, options.bookmarks, initial=bool(options.initial))
        if initial and revision > self._store.revision:
            return _refusal_events(api_errors.future_revision_error(revision, self._store.revision))
        since = self._store.revision if options.accepts_any_revision or initial else revision
        storage = context.route.resource.storage
        try:
            feed = self._store.open_feed(storage, since, chosen.interest)
        except Compacted:
            return _refusal_events(self._too_old(storage, since))
        begin = self._begin(storage, chosen, ended=bool(options.initial and options.bookmarks)) if initial else []
        return self._events(storage, chosen, begin, feed, table)

    def _begin(self, storage: str, chosen: ObjectSelection, *, ended: bool) -> Sequence[WatchEvent]:
        """The initial objects and the bookmark after them."""
        found = chosen.of(self._store.objects(storage, chosen.namespace, interest=chosen.interest))
        end = [WatchEvent("BOOKMARK", revision=self._store.revision, initial=True)] if ended else []
        return [*(WatchEvent("ADDED", one) for one in found), *end]

    async def _events(
        self, storage: str, chosen: ObjectSelection, begin: Sequence[WatchEvent], feed: ChangeFeed, table: WatchSchedule
    ) -> AsyncIterator[Sequence[WatchEvent]]:
        alarm = _Alarm(self._clock)
        self._open[feed] = table
        try:
            for start in range(0, len(begin), BATCH):
                yield begin[start : start + BATCH]
            while (now := self._clock.boottime()) < table.end:
                if changes := feed.take(BATCH):
                    changes = await self._store.wait_durable_changes(changes)
                    if events := [event for change in changes if (event := watch_event(change, chosen))]:
                        yield events
                elif now >= table.bookmark:
                    table.schedule_bookmark(now)
                    if self._store.revision >= feed.since:  # otherwise the client would see time go backwards
                        yield [await self._bookmark()]
                else:
                    await alarm.until(feed.wait_for_change(), min(table.bookmark, table.end))
        except Compacted:
            yield [WatchEvent("ERROR", error=self._too_old(storage, feed.since).status())]
        finally:
            del self._open[feed]
            feed.close()
            alarm.close()

    async def _bookmark(self) -> WatchEvent:
        revision = self._store.revision
        with contextlib.suppress(Unavailable):  # no watch has shown a reverted change
            await self._store.wait_durable(revision)
        return WatchEvent("BOOKMARK", revision=revision)

    def _too_old(self, storage: str, since: int) -> api_errors.ApiError:
        return api_errors.expired_error(f"too old resource version: {since} ({self._store.oldest_revision(storage)})")


def watch_event(change: StoredChange, chosen: ObjectSelection) -> WatchEvent | None:
    """The change as seen through the selection: leaving it is a deletion, entering it an addition (pure)."""
    if chosen.selects_all:
        return WatchEvent(change.kind.value, change.new)
    now = change.kind is not StoredChangeKind.DELETED and change.new in chosen
    before = change.old is not None and change.old in chosen
    if now:
        return WatchEvent("MODIFIED" if before else "ADDED", change.new)
    if before:
        return WatchEvent("DELETED", change.new if change.kind is StoredChangeKind.DELETED else change.as_deleted())
    return None


async def _refusal_events(error: api_errors.ApiError) -> AsyncIterator[Sequence[WatchEvent]]:
    """A watch that cannot start reports its error in the stream, like one that cannot continue."""
    yield [WatchEvent("ERROR", error=error.status())]


class _Alarm:
    """Waits for a future until a deadline, which rarely changes between two waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._when = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._rung: asyncio.Future[None] | None = None

    async def until(self, future: "asyncio.Future[int]", when: float) -> None:
        if self._rung is None or self._rung.done() or self._when != when:
            self._rung = self._set(when)
        await wait_any(future, self._rung)

    def _set(self, when: float) -> "asyncio.Future[None]":
        """Uses a timer, not a sleeping task: a thousand nodes have thousands of watches with a bookmark per minute."""
        self.close()
        loop = asyncio.get_running_loop()
        rung: asyncio.Future[None] = loop.create_future()
        self._when = when
        self._timer = loop.call_later(max(0.0, when - self._clock.boottime()), rung.set_result, None)
        return rung

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
