"""Table responses: of one object, of a page of a list, of the events of a watch."""

from collections.abc import Iterable

from lastcall_lab.apiserver.resources import version_conversion
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.storage.store import StoredObject
from lastcall_lab.apiserver.tables.table_builder import Include, build_table, parse_include
from lastcall_lab.apiserver.values.request import Object


class RequestedTable:
    """The tables of one request. ApiError if its ``includeObject`` is invalid."""

    def __init__(self, context: RequestContext, version: str = "v1") -> None:
        self._resource = context.route.resource
        self._include: Include = parse_include(context.request.parameter("includeObject"))
        self._version = version
        self._headers = True

    def single_object(self, obj: Object, now: float) -> Object:
        """The table of one object, as in watch events; a Status is returned unchanged.

        The first table names the columns; in later ones they are null.
        """
        if obj.get("kind") == "Status":
            return obj
        version = obj["metadata"].get("resourceVersion")
        metadata = {"resourceVersion": version} if version else {}
        return self._table([version_conversion.to_stored(obj, self._resource)], metadata, now)

    def head(self, metadata: Object, now: float) -> Object:
        """A list's table without its rows; ``metadata`` is that of the list."""
        made = self._table((), metadata, now)
        del made["rows"]
        return made

    def row(self, stored: StoredObject, now: float) -> Object:
        """One row of a list's table."""
        obj = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, **stored.to_object()}
        row: Object = self._table([obj], {}, now)["rows"][0]
        return row

    def _table(self, objects: Iterable[Object], metadata: Object, now: float) -> Object:
        made = build_table(
            self._resource,
            objects,
            now,
            self._include,
            metadata=metadata,
            headers=self._headers,
            version=self._version,
        )
        self._headers = False
        return made
