"""The verbs of the Kubernetes API on any transport. Errors are those of ``lastcall.errors``."""

import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import msgspec

from lastcall import __version__
from lastcall.adapters.kube import api_errors
from lastcall.adapters.kube.decoding import decode_json
from lastcall.adapters.kube.resources import PODS, ApiResource, Object
from lastcall.adapters.kube.transport import JSON, ApiResponse, Chunks, Transport
from lastcall.errors import LastcallError, Unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
_APPLY = "application/apply-patch+yaml"

PAGE = 500
"""Objects in one page of a list (kubectl's default)."""

Body = Mapping[str, Any] | Sequence[Any] | msgspec.Struct
"""A request body: JSON as Python objects, or a struct."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class ObjectList(msgspec.Struct, Generic[T], frozen=True):
    """Objects of one moment; a watch continues from ``revision``."""

    items: Sequence[T]
    revision: str


class Client:
    """``manager`` owns the fields that it writes, and is sent as the User-Agent."""

    def __init__(self, transport: Transport, *, manager: str = "lastcall") -> None:
        self._transport = transport
        self._manager = manager
        self._agent = f"{manager}/{__version__}"

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get(self, resource: ApiResource[T], name: str, *, namespace: str = "") -> T:
        """One object; NotFound if there is none."""
        return self._decode_object(resource, await self._request_body("GET", resource.path(namespace, name)))

    async def list(
        self, resource: ApiResource[T], *, namespace: str = "", labels: str = "", fields: str = "", limit: int = PAGE
    ) -> ObjectList[T]:
        """All objects that the selectors choose (``app=a``, ``spec.nodeName=n1``), read ``limit`` at a time.

        Raises Expired if reading the pages took longer than the server keeps the revision of the first one.
        """
        raw, revision = await self.list_raw(resource, namespace=namespace, labels=labels, fields=fields, limit=limit)
        return ObjectList([decode_json(item, resource.shape) for item in raw], revision)

    async def list_raw(
        self, resource: ApiResource[Any], *, namespace: str = "", labels: str = "", fields: str = "", limit: int = PAGE
    ) -> tuple[Sequence[msgspec.Raw], str]:
        """As ``list``, with the objects as JSON."""
        items: list[msgspec.Raw] = []
        revision = ""
        pages = self.list_pages(resource, namespace=namespace, labels=labels, fields=fields, limit=limit)
        async with contextlib.aclosing(pages):
            async for page, revision in pages:  # noqa: B007  (the last one's is the list's)
                items += page
        return items, revision

    async def list_pages(
        self, resource: ApiResource[Any], *, namespace: str = "", labels: str = "", fields: str = "", limit: int = PAGE
    ) -> AsyncGenerator[tuple[Sequence[msgspec.Raw], str], None]:
        """As ``list_raw``, page by page, to use less memory; each page has the revision of the whole list."""
        query = {"labelSelector": labels, "fieldSelector": fields, "limit": str(limit) if limit else ""}
        while True:
            page = decode_json(await self._request_body("GET", resource.path(namespace), query), _Page)
            yield page.items or (), page.metadata.resource_version
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    async def watch(
        self,
        resource: ApiResource[Any],
        revision: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        seconds: int = 300,
    ) -> Chunks:
        """One watch from ``revision`` with bookmarks, as the server sends it; an ``Informer`` keeps one going."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": revision,
            "timeoutSeconds": str(seconds),
            "labelSelector": labels,
            "fieldSelector": fields,
        }
        answer = await self._send_request("GET", resource.path(namespace), query, None, JSON, stream=True)
        if isinstance(answer.body, bytes):
            raise Unavailable("the server answered a watch with a single document")
        return answer.body

    # -- writing -------------------------------------------------------------------------------------------------------

    async def create(self, resource: ApiResource[T], obj: Body, *, namespace: str = "", dry_run: bool = False) -> T:
        """Creates an object; raises AlreadyExists, Refused."""
        return self._decode_object(
            resource, await self._request_body("POST", resource.path(namespace), self._write_query(dry_run), obj)
        )

    async def create_subresource(
        self, resource: ApiResource[Any], name: str, subresource: str, obj: Body, *, namespace: str = ""
    ) -> Object:
        """POSTs to a subresource (``binding``, ``token``) and returns the answer."""
        path = resource.path(namespace, name, subresource)
        return decode_json(await self._request_body("POST", path, self._write_query(dry_run=False), obj), dict)

    async def update(
        self,
        resource: ApiResource[T],
        name: str,
        obj: Body,
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> T:
        """Replaces the object; raises Conflict if its resourceVersion is not the current one."""
        path = resource.path(namespace, name, subresource)
        return self._decode_object(resource, await self._request_body("PUT", path, self._write_query(dry_run), obj))

    async def patch(
        self,
        resource: ApiResource[T],
        name: str,
        patch: Body,
        *,
        namespace: str = "",
        subresource: str = "",
        kind: str = MERGE,
        dry_run: bool = False,
    ) -> T:
        """Patches the object; ``kind`` is MERGE, STRATEGIC or JSON_PATCH. A resourceVersion in it is a precondition."""
        path = resource.path(namespace, name, subresource)
        return self._decode_object(
            resource, await self._request_body("PATCH", path, self._write_query(dry_run), patch, kind)
        )

    async def apply(
        self,
        resource: ApiResource[T],
        name: str,
        obj: Body,
        *,
        namespace: str = "",
        subresource: str = "",
        force: bool = False,
    ) -> T:
        """Server-side apply of the fields in ``obj``; raises Conflict if another manager owns one of them."""
        query = {**self._write_query(dry_run=False), "force": "true" if force else ""}
        path = resource.path(namespace, name, subresource)
        return self._decode_object(resource, await self._request_body("PATCH", path, query, obj, _APPLY))

    async def delete(
        self,
        resource: ApiResource[Any],
        name: str,
        *,
        namespace: str = "",
        grace: int | None = None,
        uid: str = "",
        revision: str = "",
        propagation: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Deletes; NotFound if it is gone, Conflict if the preconditions ``uid`` or ``revision`` do not hold.

        Returns the answer: the object as it is now, or a Status.
        """
        options = _delete_options(grace, uid, revision, propagation, dry_run=dry_run)
        answer: Object = decode_json(
            await self._request_body("DELETE", resource.path(namespace, name), {}, options), dict
        )
        return answer

    async def delete_and_decode(
        self, resource: ApiResource[T], name: str, *, namespace: str = "", grace: int | None = None, uid: str = ""
    ) -> T | None:
        """As ``delete``, but returns the object as ``resource``'s shape; None if the answer is not this object."""
        options = _delete_options(grace, uid, "", "", dry_run=False)
        answer = await self._request_body("DELETE", resource.path(namespace, name), {}, options)
        try:
            return decode_json(answer, resource.shape)
        except Unavailable:
            decode_json(answer, dict)  # an undecodable answer may be for any object
            return None

    async def evict(
        self,
        name: str,
        *,
        namespace: str,
        grace: int | None = None,
        uid: str = "",
        dry_run: bool = False,
    ) -> None:
        """Requests a pod's eviction; NotNow while a PodDisruptionBudget, or a webhook, does not allow it."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": _delete_options(grace, uid, "", "", dry_run=dry_run),
        }
        query = {"dryRun": "All" if dry_run else ""}
        await self._request_body("POST", PODS.path(namespace, name, "eviction"), query, eviction)

    # -- within --------------------------------------------------------------------------------------------------------

    def _write_query(self, dry_run: bool) -> dict[str, str]:
        return {"fieldManager": self._manager, "dryRun": "All" if dry_run else ""}

    def _decode_object(self, resource: ApiResource[T], body: bytes) -> T:
        return decode_json(body, resource.shape)

    async def _request_body(
        self, method: str, path: str, query: Mapping[str, str] | None = None, obj: Body | None = None, kind: str = JSON
    ) -> bytes:
        answer = await self._send_request(method, path, query or {}, obj, kind)
        assert isinstance(answer.body, bytes)
        return answer.body

    async def _send_request(
        self, method: str, path: str, query: Mapping[str, str], obj: Body | None, kind: str, *, stream: bool = False
    ) -> ApiResponse:
        said = _encode_query(tuple(query.items()))
        headers = {"accept": JSON, "user-agent": self._agent}
        if obj is not None:
            headers["content-type"] = kind
        body = b"" if obj is None else msgspec.json.encode(obj)
        target = f"{path}?{said}" if said else path
        try:
            answer = await self._transport.request(method, target, headers, body, stream=stream)
        except LastcallError as error:
            error.request = f"{method} {path}"
            raise
        if warning := answer.headers.get("warning"):
            log.info("%s %s: %s", method, path, warning)
        if answer.status >= 300:
            failed = api_errors.response_error(answer)
            failed.request = f"{method} {path}: {answer.status}"
            raise failed
        return answer


@lru_cache(maxsize=256)  # the same header for nearly all writes
def _encode_query(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode([(name, value) for name, value in query if value])


def _delete_options(grace: int | None, uid: str, revision: str, propagation: str, *, dry_run: bool) -> Object:
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if propagation:
        options["propagationPolicy"] = propagation
    if uid or revision:
        options["preconditions"] = {
            **({"uid": uid} if uid else {}),
            **({"resourceVersion": revision} if revision else {}),
        }
    if dry_run:
        options["dryRun"] = ["All"]
    return options
