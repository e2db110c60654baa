"""Objects in the forms that clients may ask for instead: tables, and metadata alone."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from lastcall.lab.apiserver import renaming, status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.media import Form
from lastcall.lab.apiserver.reads import Page
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.scheme import Resource
from lastcall.lab.apiserver.store import Stored
from lastcall.lab.apiserver.tables.asked import Asked

if TYPE_CHECKING:
    from lastcall.lab.apiserver.server import ApiServer


class Listing(NamedTuple):
    """A list: all but its items, the name of the field that has those, and each of them as JSON, made when it is needed.

    ``none`` stands in the field if there are none.
    """

    head: Object
    name: str
    items: Iterator[bytes]
    none: list[Any] | None


class _Partial(msgspec.Struct):
    """An object of which only the metadata is looked at, and that not closely."""

    metadata: msgspec.Raw


def one(context: Context, obj: Object, form: Form, server: "ApiServer") -> Object:
    """One object, with kind and apiVersion. ApiError if it cannot have that form. A Status has no other form."""
    if not form.transform or obj.get("kind") == "Status":
        return obj
    if form.transform == "Table":
        return Asked(context, form.version).one(obj, server.clock.wall())
    if form.transform.endswith("List"):
        if context.route.resource.custom:
            raise status.ApiError(500, "", "content is not a list")
        what = f"the requested object is not a list ({_go_type(context.route.resource)})"
        raise _impossible(form, what)
    return partial(renaming.shown(obj["metadata"], context.route.resource), form)


def many(context: Context, page: Page, metadata: Object, form: Form, server: "ApiServer") -> Listing:
    """A page of a list with its metadata. ApiError if it cannot have that form."""
    if form.transform == "Table":
        table, now = Asked(context, form.version), server.clock.wall()
        head = table.head(metadata, now)
        return Listing(head, "rows", (msgspec.json.encode(table.row(item, now)) for item in page.items), [])
    if not form.transform.endswith("List"):
        raise _impossible(form, f"the requested object is a list ({_go_type(context.route.resource, 'List')})")
    head = {"kind": form.transform, "apiVersion": f"meta.k8s.io/{form.version}", "metadata": metadata}
    resource = context.route.resource
    items = (msgspec.json.encode(partial(raw(item, resource), form)) for item in page.items)
    return Listing(head, "items", items, None)


def partial(metadata: object, form: Form) -> Object:
    """An object's metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{form.version}", "metadata": metadata}


def raw(stored: Stored, resource: Resource) -> object:
    """The metadata of a stored object."""
    if resource.behaviour.hidden_annotations:
        return renaming.shown(stored.object()["metadata"], resource)
    return msgspec.json.decode(stored.data, type=_Partial).metadata


def _impossible(form: Form, what: str) -> status.ApiError:
    return status.ApiError(406, "NotAcceptable", f"you requested {form.transform}, but {what}")


def _go_type(resource: Resource, suffix: str = "") -> str:
    """The name of the type within the API server, which it tells."""
    if resource.custom:
        return f"*unstructured.Unstructured{suffix}"
    return f"*{resource.group.partition('.')[0] or 'core'}.{resource.kind}{suffix}"
