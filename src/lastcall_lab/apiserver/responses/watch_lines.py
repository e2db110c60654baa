"""Encodes watch events once for all watches of the same resource and format."""

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from lastcall.ports.node import Clock
from lastcall_lab.apiserver.encoding.media_types import ResponseFormat
from lastcall_lab.apiserver.registry.watches import WatchEvent
from lastcall_lab.apiserver.resources import version_conversion
from lastcall_lab.apiserver.responses import transforms
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.schema import Schemas
from lastcall_lab.apiserver.storage.store import StoredObject
from lastcall_lab.apiserver.tables.requested_table import RequestedTable
from lastcall_lab.apiserver.values.request import Object

_KEPT = 512
"""The number of cached lines."""


class LineCache:
    """The newest lines; equal watches send the same bytes."""

    def __init__(self) -> None:
        self._lines: dict[Any, bytes] = {}

    def get(self, key: Any, make: Callable[[], bytes]) -> bytes:
        """The line with that key; encodes it if it is not cached."""
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = make()
            if len(self._lines) > _KEPT:
                del self._lines[next(iter(self._lines))]
        return line


class WatchLines:
    """Encodes the events of one watch. ApiError at once if the requested format is not available."""

    def __init__(
        self, context: RequestContext, form: ResponseFormat, *, clock: Clock, schemas: Schemas, cache: LineCache
    ) -> None:
        self._resource = context.route.resource
        self._include = context.request.parameter("includeObject")
        self._form = form
        self._clock = clock
        self._schemas = schemas
        self._cache = cache
        self._table = RequestedTable(context, form.version) if form.transform == "Table" else None
        self._first = True
        names = self._resource.kind.encode(), self._resource.api_version.encode()
        self._head = b'"object":{"kind":"%s","apiVersion":"%s",' % names

    async def write_batches(self, batches: AsyncIterator[Sequence[WatchEvent]]) -> AsyncIterator[bytes]:
        """The encoded batches."""
        try:
            async for batch in batches:
                yield b"".join([self._line(event) for event in batch])
        finally:
            await batches.aclose()  # type: ignore[attr-defined]  # an async generator

    def _line(self, event: WatchEvent) -> bytes:
        if event.error is not None:
            return _encode_line(event.type, event.error)
        if event.stored is None:
            return self._bookmark_line(event)
        if self._form.transform:
            return self._transformed_line(event.type, event.stored)
        return self._cache.get(
            (event.stored.revision, event.type, self._resource.api_version),
            partial(self._plain_line, event.type, event.stored),
        )

    def _bookmark_line(self, event: WatchEvent) -> bytes:
        """A bookmark line, shared by thousands of watches of a resource."""
        if self._form.transform:
            return _encode_line(event.type, self._bookmark_object(event))
        key = event.revision, event.type, self._head, event.initial
        return self._cache.get(key, lambda: _encode_line(event.type, self._bookmark_object(event)))

    def _plain_line(self, kind: str, stored: StoredObject) -> bytes:
        return b'{"type":"%s",%s%s}\n' % (
            kind.encode(),
            self._head,
            version_conversion.to_served_json(stored, self._resource)[1:],
        )

    def _transformed_line(self, kind: str, stored: StoredObject) -> bytes:
        """The first table of a watch names the columns; later ones are shared by all watches for a second."""
        if self._table is None:
            form = self._form
            return self._cached_line(
                kind,
                stored,
                lambda: transforms.partial_metadata(transforms.stored_metadata(stored, self._resource), form),
            )
        table, now, resource = self._table, self._clock.wall(), self._resource

        def made() -> Object:
            return table.single_object(version_conversion.to_served(stored, resource), now)

        if self._first:
            self._first = False
            return _encode_line(kind, made())
        return self._cached_line(kind, stored, made, int(now), self._include)

    def _cached_line(self, kind: str, stored: StoredObject, make: Callable[[], Object], *more: object) -> bytes:
        key = (stored.revision, kind, self._resource.api_version, self._form, *more)
        return self._cache.get(key, lambda: _encode_line(kind, make()))

    def _bookmark_object(self, event: WatchEvent) -> Object:
        """An object with only its resourceVersion set, which tells the client how far the watch has come."""
        metadata: Object = {"resourceVersion": str(event.revision)}
        if event.initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        if self._form.transform.startswith("Partial"):
            return transforms.partial_metadata(metadata, self._form)
        resource = self._resource
        node = self._schemas.of(resource)
        empty: Object = node.zero_value() if node else {}
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, **empty, "metadata": metadata}
        self._first = False
        return self._table.single_object(obj, self._clock.wall()) if self._table else obj


def _encode_line(kind: str, obj: Object) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), msgspec.json.encode(obj))
