"""Tables as answers: of one object, of a page of a list, of the events of a watch."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from lastcall.lab.apiserver import renaming
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.reads import Page
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.store import Stored
from lastcall.lab.apiserver.tables.table import Include, included, table


class Asked:
    """The tables of one request. ApiError if its ``includeObject`` makes no sense."""

    def __init__(self, context: Context, version: str = "v1") -> None:
        self._resource = context.route.resource
        self._include: Include = included(context.request.parameter("includeObject"))
        self._version = version
        self._headers = True

    def one(self, obj: Object, now: float) -> Object:
        """Of one object, such as the events of a watch have; a Status stays what it is.

        The first one names the columns; of those after it they are null.
        """
        if obj.get("kind") == "Status":
            return obj
        version = obj["metadata"].get("resourceVersion")
        metadata = {"resourceVersion": version} if version else {}
        return self._table([renaming.kept(obj, self._resource)], metadata, now)

    def page(self, page: Page, metadata: Object, now: float) -> Object:
        """Of a page; ``metadata`` is that of the list."""
        with _uncollected():
            return self._table((self._named(item) for item in page.items), metadata, now)

    def _named(self, stored: Stored) -> Object:
        return {"kind": self._resource.kind, "apiVersion": self._resource.api_version, **stored.object()}

    def _table(self, objects: Iterable[Object], metadata: Object, now: float) -> Object:
        made = table(
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


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector: JSON has no cycles, and to look for some takes longer than ten thousand rows."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
