"""Builds responses: objects, lists, events and errors in the negotiated format."""

from collections.abc import AsyncIterator, Sequence

from lastcall.ports.node import Clock
from lastcall_lab.apiserver.encoding import media_types
from lastcall_lab.apiserver.encoding.media_types import ResponseFormat
from lastcall_lab.apiserver.registry.deletes import RemovedObject
from lastcall_lab.apiserver.registry.reads import ListPage
from lastcall_lab.apiserver.registry.watches import WatchEvent
from lastcall_lab.apiserver.resources import version_conversion
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.responses import transforms, warning_headers
from lastcall_lab.apiserver.responses.transforms import ListBody
from lastcall_lab.apiserver.responses.watch_lines import LineCache, WatchLines
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.schema import Schemas
from lastcall_lab.apiserver.storage.store import StoredObject
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Object, Request, Response

FEW = 256
"""Up to this number of items, a list is sent in one piece."""


class ResponseBuilder:
    """Responses of one API server. Its watches share their encoded lines."""

    def __init__(self, clock: Clock, schemas: Schemas) -> None:
        self._clock = clock
        self._schemas = schemas
        self._lines = LineCache()

    def object_response(
        self, context: RequestContext, obj: Object | StoredObject, form: ResponseFormat, *, code: int = 200
    ) -> Response:
        """One object, with kind and apiVersion; sends the stored JSON unchanged if possible."""
        if isinstance(obj, StoredObject):
            resource = context.route.resource
            if form.media == media_types.JSON and not form.transform:
                return Response(
                    code,
                    _response_headers(context, form.media),
                    media_types.format_json(_named_json(obj, resource), form),
                )
            obj = version_conversion.to_served(obj, resource)
        said = transforms.transform_object(context, obj, form, now=self._clock.wall())
        return Response(code, _response_headers(context, form.media), media_types.encode_body(said, form))

    def list_response(self, context: RequestContext, page: ListPage, form: ResponseFormat) -> Response:
        """A list. Sends items as stored, without decoding them, and long lists in pieces."""
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
            listing = transforms.transform_list(context, page, metadata, form, now=self._clock.wall())
        else:
            listing = ListBody(head, "items", (_item(item, resource) for item in page.items), [])
        body = (
            media_types.encode_list(*listing[:3], form)
            if page.items
            else iter((media_types.encode_body(_empty(listing), form),))
        )
        few = len(page.items) <= FEW
        return Response(200, _response_headers(context, form.media), b"".join(body) if few else body)

    def watch_response(
        self, context: RequestContext, batches: AsyncIterator[Sequence[WatchEvent]], form: ResponseFormat
    ) -> Response:
        """A watch: one line of JSON per event."""
        lines = WatchLines(context, form, clock=self._clock, schemas=self._schemas, cache=self._lines).write_batches(
            batches
        )
        return Response(200, _response_headers(context, form.media), lines)

    def deletion_response(
        self, context: RequestContext, removed: RemovedObject, options: DeleteOptions, form: ResponseFormat
    ) -> Response:
        """After a DELETE: the object if it still exists or its kind returns it, otherwise a Status.

        The code is 202 only if the object waits and the options contain the deprecated ``orphanDependents: false``.
        """
        resource, obj = context.route.resource, removed.obj
        if removed.gone and resource.behaviour.status_after_delete:
            details = {"name": context.route.name, "group": resource.group, "kind": resource.plural}
            details = {name: value for name, value in details.items() if value}
            details["uid"] = obj["metadata"]["uid"]
            said = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
            return self.object_response(context, said, form)
        code = 202 if options.orphan is False and not removed.gone else 200
        return self.object_response(context, removed.stored or obj, form, code=code)


def _named_json(stored: StoredObject, resource: ServedResource) -> bytes:
    """The object as JSON, with kind and apiVersion."""
    head = resource.kind.encode(), resource.api_version.encode()
    return b'{"kind":"%s","apiVersion":"%s",%s' % (*head, version_conversion.to_served_json(stored, resource)[1:])


def _empty(listing: ListBody) -> Object:
    return {**listing.head, listing.name: listing.none}


def _item(stored: StoredObject, resource: ServedResource) -> bytes:
    """A list item; custom resources include their kind and apiVersion."""
    data = version_conversion.to_served_json(stored, resource)
    if not resource.custom:
        return data
    return b'{"apiVersion":"%s","kind":"%s",%s' % (resource.api_version.encode(), resource.kind.encode(), data[1:])


def error_response(request: Request, error: ApiError, said: Sequence[str] = ()) -> Response:
    """A Status with the error, in JSON if no format was negotiated."""
    try:
        form = media_types.negotiate_format(request)
    except ApiError:
        form = ResponseFormat()
    if form.transform:
        form = ResponseFormat(pretty=form.pretty)
    headers: dict[str, str | list[str]] = {"content-type": form.media}
    if error.retry_after:
        headers["retry-after"] = str(error.retry_after)
    if said:
        headers["warning"] = list(warning_headers.warning_headers(said))
    return Response(error.code, headers, media_types.encode_body(error.status(), form))


def not_found_page() -> Response:
    """The 404 page of Go's HTTP server for unknown paths."""
    return Response(404, {"content-type": "text/plain; charset=utf-8"}, b"404 page not found\n")


def _response_headers(context: RequestContext, content_type: str) -> dict[str, str | list[str]]:
    headers: dict[str, str | list[str]] = {"content-type": content_type}
    if context.warnings:
        headers["warning"] = list(warning_headers.warning_headers(context.warnings))
    return headers
