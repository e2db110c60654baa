"""Answers: objects, lists, events and errors in the form that the client has asked for."""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from lastcall.lab.apiserver import media, renaming, transforms, warnings
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.event_lines import EventLines
from lastcall.lab.apiserver.kinds.base import Options
from lastcall.lab.apiserver.media import Form
from lastcall.lab.apiserver.reads import Page
from lastcall.lab.apiserver.removals import Removed
from lastcall.lab.apiserver.request import Object, Request, Response
from lastcall.lab.apiserver.scheme import Resource
from lastcall.lab.apiserver.status import ApiError
from lastcall.lab.apiserver.store import Stored
from lastcall.lab.apiserver.transforms import Listing
from lastcall.lab.apiserver.watches import Event

if TYPE_CHECKING:
    from lastcall.lab.apiserver.server import ApiServer


FEW = 256
"""Items of a list that is answered whole."""


def one(context: Context, obj: Object | Stored, form: Form, server: "ApiServer", *, code: int = 200) -> Response:
    """One object, with kind and apiVersion; one that is stored is sent as it is there."""
    if isinstance(obj, Stored):
        resource = context.route.resource
        if form.media == media.JSON and not form.transform:
            return Response(code, _headers(context, form.media), media.written(_named(obj, resource), form))
        obj = renaming.served(obj, resource)
    said = transforms.one(context, obj, form, server)
    return Response(code, _headers(context, form.media), media.encoded(said, form))


def _named(stored: Stored, resource: Resource) -> bytes:
    """The object as JSON, with kind and apiVersion."""
    head = resource.kind.encode(), resource.api_version.encode()
    return b'{"kind":"%s","apiVersion":"%s",%s' % (*head, renaming.data(stored, resource)[1:])


def page(context: Context, page: Page, form: Form, server: "ApiServer") -> Response:
    """A list; its items are sent as they are stored, without a detour over Python's objects, and many in pieces."""
    resource = context.route.resource
    metadata: Object = {"resourceVersion": str(page.revision)}
    if page.token:
        metadata["continue"] = page.token
    if page.remaining:
        metadata["remainingItemCount"] = page.remaining
    head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}
    if resource.custom and not form.transform:
        metadata.setdefault("continue", "")
    if form.transform:
        listing = transforms.many(context, page, metadata, form, server)
    else:
        listing = Listing(head, "items", (_item(item, resource) for item in page.items), [])
    body = media.pieces(*listing[:3], form) if page.items else iter((media.encoded(_empty(listing), form),))
    few = len(page.items) <= FEW
    return Response(200, _headers(context, form.media), b"".join(body) if few else body)


def _empty(listing: Listing) -> Object:
    return {**listing.head, listing.name: listing.none}


def _item(stored: Stored, resource: Resource) -> bytes:
    """An item of a list; those of custom resources say themselves what they are."""
    data = renaming.data(stored, resource)
    if not resource.custom:
        return data
    return b'{"apiVersion":"%s","kind":"%s",%s' % (resource.api_version.encode(), resource.kind.encode(), data[1:])


def events(context: Context, batches: AsyncIterator[Sequence[Event]], form: Form, server: "ApiServer") -> Response:
    """A watch: one line of JSON for each event."""
    lines = EventLines(context, form, server).written(batches)
    return Response(200, _headers(context, form.media), lines)


def deleted(context: Context, removed: Removed, options: Options, form: Form, server: "ApiServer") -> Response:
    """After a DELETE: the object if it is still there, or if its kind says so, else a Status.

    The code is 202 only if the object waits and the options say so by the old ``orphanDependents: false``.
    """
    resource, obj = context.route.resource, removed.obj
    if removed.gone and resource.behaviour.status_after_delete:
        details = {"name": context.route.name, "group": resource.group, "kind": resource.plural}
        details = {name: value for name, value in details.items() if value}
        details["uid"] = obj["metadata"]["uid"]
        said = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return one(context, said, form, server)
    code = 202 if options.orphan is False and not removed.gone else 200
    return one(context, removed.stored or obj, form, server, code=code)


def failure(request: Request, error: ApiError, said: Sequence[str] = ()) -> Response:
    """A Status that says what is wrong, in JSON for those to whom nothing else can be said."""
    try:
        form = media.negotiated(request)
    except ApiError:
        form = Form()
    if form.transform:
        form = Form(pretty=form.pretty)
    headers: dict[str, str | list[str]] = {"content-type": form.media}
    if error.retry_after:
        headers["retry-after"] = str(error.retry_after)
    if said:
        headers["warning"] = list(warnings.headers(said))
    return Response(error.code, headers, media.encoded(error.status(), form))


def page_not_found() -> Response:
    """As Go's HTTP server says it, for paths that nobody serves."""
    return Response(404, {"content-type": "text/plain; charset=utf-8"}, b"404 page not found\n")


def _headers(context: Context, content_type: str) -> dict[str, str | list[str]]:
    headers: dict[str, str | list[str]] = {"content-type": content_type}
    if context.warnings:
        headers["warning"] = list(warnings.headers(context.warnings))
    return headers
