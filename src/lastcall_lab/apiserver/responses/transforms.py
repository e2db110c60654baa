"""Alternative representations of objects: tables and partial metadata."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from lastcall_lab.apiserver.encoding.media_types import ResponseFormat
from lastcall_lab.apiserver.registry.reads import ListPage
from lastcall_lab.apiserver.resources import version_conversion
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.storage.store import StoredObject
from lastcall_lab.apiserver.tables.requested_table import RequestedTable
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object


class ListBody(NamedTuple):
    """A list: everything except its items, the name of their field, and the items as JSON, encoded on demand.

    ``none`` is the value of that field for an empty list.
    """

    head: Object
    name: str
    items: Iterator[bytes]
    none: list[Any] | None


class _Partial(msgspec.Struct):
    """An object decoded only as far as its metadata."""

    metadata: msgspec.Raw


def transform_object(context: RequestContext, obj: Object, form: ResponseFormat, *, now: float) -> Object:
    """One object, with kind and apiVersion. A Status has no other form. ApiError if the object cannot have the form.

    ``now``: seconds since 1970; tables show ages.
    """
    if not form.transform or obj.get("kind") == "Status":
        return obj
    if form.transform == "Table":
        return RequestedTable(context, form.version).single_object(obj, now)
    if form.transform.endswith("List"):
        if context.route.resource.custom:
            raise api_errors.ApiError(500, "", "content is not a list")
        what = f"the requested object is not a list ({_go_type(context.route.resource)})"
        raise _impossible(form, what)
    return partial_metadata(version_conversion.visible_metadata(obj["metadata"], context.route.resource), form)


def transform_list(
    context: RequestContext, page: ListPage, metadata: Object, form: ResponseFormat, *, now: float
) -> ListBody:
    """A page of a list with its metadata; ``now`` as above. ApiError if it cannot have that form."""
    if form.transform == "Table":
        table = RequestedTable(context, form.version)
        head = table.head(metadata, now)
        return ListBody(head, "rows", (msgspec.json.encode(table.row(item, now)) for item in page.items), [])
    if not form.transform.endswith("List"):
        raise _impossible(form, f"the requested object is a list ({_go_type(context.route.resource, 'List')})")
    head = {"kind": form.transform, "apiVersion": f"meta.k8s.io/{form.version}", "metadata": metadata}
    resource = context.route.resource
    items = (msgspec.json.encode(partial_metadata(stored_metadata(item, resource), form)) for item in page.items)
    return ListBody(head, "items", items, None)


def partial_metadata(metadata: object, form: ResponseFormat) -> Object:
    """The PartialObjectMetadata of an object."""
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{form.version}", "metadata": metadata}


def stored_metadata(stored: StoredObject, resource: ServedResource) -> object:
    """The metadata of a stored object."""
    if resource.behaviour.hidden_annotations:
        return version_conversion.visible_metadata(stored.to_object()["metadata"], resource)
    return msgspec.json.decode(stored.data, type=_Partial).metadata


def _impossible(form: ResponseFormat, what: str) -> api_errors.ApiError:
    return api_errors.ApiError(406, "NotAcceptable", f"you requested {form.transform}, but {what}")


def _go_type(resource: ServedResource, suffix: str = "") -> str:
    """The type name within the API server, which appears in messages."""
    if resource.custom:
        return f"*unstructured.Unstructured{suffix}"
    return f"*{resource.group.partition('.')[0] or 'core'}.{resource.kind}{suffix}"
