"""The runner's API client: turns actions into requests, and watches into batches."""

import hashlib
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

from lastcall.adapters.kube import resources
from lastcall.adapters.kube.client import MERGE, STRATEGIC, Client
from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.errors import AlreadyExists, ApiNotPermitted, NotFound, RequestRefused, Unavailable
from lastcall.ports.node import Clock
from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.apiserver.catalog.optional_resources import OPTIONAL, optional_resources
from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.controllers.framework.actions import (
    Action,
    BindPod,
    CreateObject,
    DeleteObject,
    FinalizeNamespace,
    IfOwnersGone,
    PatchObject,
    RecordEvent,
    RunWork,
)
from lastcall_lab.controllers.framework.view import Object, ObjectRef
from lastcall_lab.controllers.runner.controller_runner import ChangeBatch, ViewChange
from lastcall_lab.controllers.runner.rate_limit import RateLimit, TokenBucket

_EVENTS = resources.EVENTS.with_shape(resources.WrittenObject)


class ClusterApiClient:
    """``controller_runner.ClusterApi`` on a Kubernetes client that follows resources.

    Without a ``pace``, requests are not rate limited. ``writing`` returns the client with which a controller writes
    objects of a resource; by default it is the same client.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        *,
        pace: RateLimit | None = None,
        writing: Callable[[str, str], Client] | None = None,
    ) -> None:
        self._client = client
        self._writing = writing or (lambda controller, resource: client)
        self._clock = clock
        self._random = random
        self._pace = pace
        self._buckets: dict[str, TokenBucket] = {}
        self._told: dict[tuple[str, ...], tuple[str, int]] = {}
        known = (*built_in_resources(), *optional_resources(OPTIONAL))
        self._versions = {one.qualified_name: one.version for one in known}

    async def follow(self, resource: str, version: str = "") -> AsyncIterator[ChangeBatch]:
        """All objects of a resource in one batch, then each change. After a relist, also the new revision.

        The revision of a deletion that only a relist reveals is unknown otherwise.
        """
        if version:
            self._versions[resource] = version
        watching = Informer(
            self._client, self._api_resource(resource), clock=self._clock, random=self._random, shared=True
        )
        listed: list[ViewChange] | None = []
        async for change in watching.changes():
            if change.kind is ChangeKind.SYNCED:
                yield ChangeBatch(int(watching.revision), listed or [])
                listed = None
                continue
            assert change.new
            now = None if change.kind is ChangeKind.DELETED else change.new
            seen = ViewChange(now, change.old)
            if listed is not None:
                listed.append(seen)
            else:
                yield ChangeBatch(_object_revision(change.new), [seen])

    async def act(self, action: Action, by: str) -> int | None:
        """Creating an existing object or deleting a missing one is no failure: the next decision sees it.

        A conflict is a failure, since it may occur without a change that would trigger another decision (``client-go``
        controllers retry after every error).
        """
        await self._wait_for_rate_limit(action, by)
        try:
            return await self._send_request(action, by)
        except (AlreadyExists, NotFound):
            return None

    async def _wait_for_rate_limit(self, action: Action, by: str) -> None:
        """Events have a client of their own, and work inside the controller needs no token."""
        if self._pace is None or isinstance(action, RecordEvent | RunWork):
            return
        bucket = self._buckets.setdefault(by, TokenBucket(self._pace))
        if wait := bucket.take_token(self._clock.boottime()):
            await self._clock.sleep(wait)

    async def _send_request(self, action: Action, by: str) -> int | None:
        match action:
            case CreateObject():
                return await self._create_object(action, by)
            case PatchObject(ref, body, subresource, uid, revision, strategic):
                conditions = {"uid": uid, "resourceVersion": revision}
                metadata = {**body.get("metadata", {}), **{name: said for name, said in conditions.items() if said}}
                whole = {**body, "metadata": metadata} if metadata else body
                patched = await self._writing(by, ref.resource).patch(
                    self._api_resource(ref.resource).with_shape(resources.WrittenObject),
                    ref.name,
                    whole,
                    namespace=ref.namespace,
                    subresource=subresource,
                    kind=STRATEGIC if strategic else MERGE,
                )
                return _revision_number(patched.metadata.resource_version)
            case DeleteObject():
                return await self._delete_object(action, by)
            case BindPod(ref, uid, node, event):
                binding = {"metadata": {"name": ref.name, "uid": uid}, "target": {"kind": "Node", "name": node}}
                client = self._writing(by, ref.resource)
                await client.create_subresource(resources.PODS, ref.name, "binding", binding, namespace=ref.namespace)
                if event:
                    await self._write_event(event, by, event.message)
                return None
            case FinalizeNamespace(ref):
                client = self._writing(by, ref.resource)
                found: Object = await client.get(resources.NAMESPACES, ref.name)
                found["spec"]["finalizers"] = []
                await client.update(resources.NAMESPACES, ref.name, found, subresource="finalize")
                return None
            case IfOwnersGone(owners, then):
                for place, uid in owners:
                    await self._ensure_gone(place, uid, by)
                return await self._send_request(then, by)
            case RunWork(verb, arguments):
                await verb(*arguments)
                return None
            case RecordEvent():
                await self._write_event(action, by, action.message)
                return None

    async def _create_object(self, action: CreateObject, by: str) -> int | None:
        """In a namespace that is being deleted, a rejected creation is no failure."""
        event, refused = action.event, action.refused
        try:
            made = await self._writing(by, action.resource).create(
                self._api_resource(action.resource).with_shape(resources.WrittenObject),
                action.obj,
                namespace=action.namespace,
            )
        except (RequestRefused, ApiNotPermitted) as error:
            if any(cause.get("reason") == "NamespaceTerminating" for cause in error.details.get("causes") or ()):
                return None
            if refused:
                await self._write_event(refused, by, refused.message.format(error=error))
            raise
        if event:
            await self._write_event(event, by, event.message.format(name=made.metadata.name))
        return _revision_number(made.metadata.resource_version)

    async def _delete_object(self, action: DeleteObject, by: str) -> int | None:
        place = action.ref
        try:
            answer = await self._writing(by, place.resource).delete(
                self._api_resource(place.resource),
                place.name,
                namespace=place.namespace,
                uid=action.uid,
                grace=action.grace,
                propagation=action.propagation,
            )
        except (RequestRefused, ApiNotPermitted) as error:
            if action.refused:
                await self._write_event(action.refused, by, action.refused.message.format(error=error))
            raise
        return _revision_number(answer["metadata"].get("resourceVersion", ""))

    async def _ensure_gone(self, place: ObjectRef, uid: str, by: str) -> None:
        """Unavailable if the object exists."""
        try:
            found = await self._writing(by, place.resource).get(
                self._api_resource(place.resource), place.name, namespace=place.namespace
            )
        except NotFound:
            return
        if found["metadata"]["uid"] == uid:
            raise Unavailable(f"{'/'.join(place)} exists, but the view does not show it yet")

    async def _write_event(self, tell: RecordEvent, by: str, message: str) -> None:
        """Creates an event, or increments the count of an equal one (``k8s.io/client-go/tools/record``)."""
        client = self._writing(by, "events")
        by = tell.source or (by if by.endswith("-controller") else f"{by}-controller")
        key = (tell.uid, tell.reason, message, by)
        now = timestamp(self._clock.wall())
        namespace = tell.about.namespace or "default"
        name, count = self._told.get(key, ("", 0))
        if name:
            try:
                patch = {"count": count + 1, "lastTimestamp": now}
                await client.patch(_EVENTS, name, patch, namespace=namespace)
            except NotFound:
                count = 0
        if not count:
            name = f"{tell.about.name}.{_event_name_hash(key, now)}"
            await client.create(_EVENTS, _new_event(tell, by, message, now, name), namespace=namespace)
        self._told[key] = (name, count + 1)

    def _api_resource(self, resource: str) -> resources.ApiResource[Any]:
        """The API resource of a qualified name, in the version that is served."""
        plural, _, group = resource.partition(".")
        return resources.dict_resource(group, self._versions.get(resource, "v1"), plural)


def _revision_number(revision: str) -> int:
    return int(revision or 0)


def _object_revision(obj: Object | None) -> int:
    return int(obj["metadata"]["resourceVersion"]) if obj else 0


def _event_name_hash(key: tuple[str, ...], now: str) -> str:
    return hashlib.sha256("\0".join((*key, now)).encode()).hexdigest()[:16]


def _new_event(tell: RecordEvent, by: str, message: str, now: str, name: str) -> Object:
    namespace = tell.about.namespace
    about = {"kind": tell.kind, "apiVersion": tell.api_version, "name": tell.about.name, "uid": tell.uid}
    if namespace:
        about["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace or "default"},
        "involvedObject": about,
        "reason": tell.reason,
        "message": message,
        "type": tell.type,
        "source": {"component": by},
        "reportingComponent": by,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
