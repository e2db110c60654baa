"""Watches: the changes since a revision, as they happen, seen through selectors."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple

from lastcall.aio import first
from lastcall.lab.apiserver import fields, status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.reads import Reader, Selection, selection
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.store import Change, Compacted, Kind, Store, Stored
from lastcall.ports import Clock

BOOKMARK_SECONDS = 60.0


class Event(NamedTuple):
    """One event of a watch: an object, or what a bookmark or an error says."""

    type: str
    stored: Stored | None = None
    said: Object | None = None


class Watcher:
    """Opens watches on the store."""

    def __init__(self, store: Store, clock: Clock, reader: Reader) -> None:
        self._store = store
        self._clock = clock
        self._reader = reader

    def open(self, context: Context) -> AsyncIterator[Sequence[Event]]:
        """The events, in batches, until the reader closes it or ``timeoutSeconds`` are over. ApiError at once."""
        request, resource = context.request, context.route.resource
        chosen = selection(context)
        asked = request.parameter("resourceVersion")
        if asked and not asked.isdigit():
            cause = fields.invalid("resourceVersion", asked, "must be a decimal integer")
            raise status.invalid("ListOptions", "meta.k8s.io", "", [cause])
        since = int(asked or 0)
        begin: list[Event] = []
        if not since or request.flag("sendInitialEvents"):
            begin = [
                Event("ADDED", one) for one in self._store.objects(resource.storage, chosen.namespace) if one in chosen
            ]
            since = self._store.revision
            if request.flag("sendInitialEvents") and request.flag("allowWatchBookmarks"):
                begin.append(self.bookmark(context, since, initial=True))
        seconds = float(request.parameter("timeoutSeconds") or 0)
        return self._events(context, chosen, begin, since, seconds)

    async def _events(
        self, context: Context, chosen: Selection, begin: list[Event], since: int, seconds: float
    ) -> AsyncIterator[Sequence[Event]]:
        if begin:
            yield begin
        end = self._clock.boottime() + seconds if seconds else float("inf")
        changes = self._store.watch(context.route.resource.storage, since)
        try:
            while (left := end - self._clock.boottime()) > 0:
                batch = await self._next(changes, left)
                if batch is None:
                    return
                if events := [event for change in batch for event in seen(change, chosen)]:
                    yield events
        except Compacted:
            gone = status.expired(f"too old resource version: {since} ({self._store.compacted})")
            yield [Event("ERROR", said=gone.status())]
        finally:
            await changes.aclose()  # type: ignore[attr-defined]

    async def _next(self, changes: AsyncIterator[Sequence[Change]], seconds: float) -> Sequence[Change] | None:
        """The next batch; None when the time is over."""
        found: list[Sequence[Change]] = []

        async def wait() -> None:
            found.append(await anext(changes))

        if seconds == float("inf"):
            await wait()
        else:
            await first(wait(), self._clock.sleep(seconds))
        return found[0] if found else None

    def bookmark(self, context: Context, revision: int, *, initial: bool = False) -> Event:
        """How far the reader has come."""
        resource = context.route.resource
        metadata: Object = {"resourceVersion": str(revision)}
        if initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        return Event("BOOKMARK", said={"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata})


def seen(change: Change, chosen: Selection) -> Iterator[Event]:
    """A change as who selects sees it: what leaves the selection is deleted, what enters it is added (pure)."""
    now = change.kind is not Kind.DELETED and change.new in chosen
    before = change.old is not None and change.old in chosen
    if now and before:
        yield Event("MODIFIED", change.new)
    elif now:
        yield Event("ADDED", change.new)
    elif before:
        yield Event("DELETED", change.new)
