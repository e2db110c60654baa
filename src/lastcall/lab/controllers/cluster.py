"""The runner's hands: actions become requests of the Kubernetes client, watches become batches."""

import hashlib
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

from lastcall.adapters.kube import resources
from lastcall.adapters.kube.client import MERGE, STRATEGIC, Client
from lastcall.adapters.kube.watching import Kind, Watching
from lastcall.errors import AlreadyExists, ApiNotPermitted, NotFound, Refused, Unavailable
from lastcall.lab.apiserver.catalog import built_in
from lastcall.lab.apiserver.meta import timestamp
from lastcall.lab.controllers.actions import Action, Bind, Create, Delete, Finalize, IfGone, Patch, Tell, Work
from lastcall.lab.controllers.pace import Bucket, Pace
from lastcall.lab.controllers.runner import Batch, Seen
from lastcall.lab.controllers.view import Object, Ref
from lastcall.ports import Clock

_EVENTS = resources.EVENTS.read_as(resources.Written)


class ClusterClient:
    """``runner.Cluster`` on a client of the Kubernetes API, which follows.

    Without a ``pace`` no request waits. ``writing`` gives the client by which a controller writes objects of a resource;
    without it that is the same one.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        *,
        pace: Pace | None = None,
        writing: Callable[[str, str], Client] | None = None,
    ) -> None:
        self._client = client
        self._writing = writing or (lambda controller, resource: client)
        self._clock = clock
        self._random = random
        self._pace = pace
        self._buckets: dict[str, Bucket] = {}
        self._told: dict[tuple[str, ...], tuple[str, int]] = {}
        self._versions = {one.qualified: one.version for one in built_in()}

    async def follow(self, resource: str, version: str = "") -> AsyncIterator[Batch]:
        """All objects of a resource in one batch, then each change; after a new list also how far it has come.

        What a list does not show any more has gone at a revision that nothing else tells.
        """
        if version:
            self._versions[resource] = version
        watching = Watching(self._client, self._named(resource), clock=self._clock, random=self._random, shared=True)
        listed: list[Seen] | None = []
        async for change in watching.changes():
            if change.kind is Kind.SYNCED:
                yield Batch(int(watching.revision), listed or [])
                listed = None
                continue
            assert change.new
            now = None if change.kind is Kind.DELETED else change.new
            seen = Seen(now, change.old)
            if listed is not None:
                listed.append(seen)
            else:
                yield Batch(_revision(change.new), [seen])

    async def act(self, action: Action, by: str) -> int | None:
        """What is there already or gone is no failure: the next decision sees it.

        A conflict is one, since it may come without a change that anybody would see (``client-go`` controllers look
        again after every error).
        """
        await self._turn(action, by)
        try:
            return await self._act(action, by)
        except (AlreadyExists, NotFound):
            return None

    async def _turn(self, action: Action, by: str) -> None:
        """Events have a client of their own, and what is done within the controller needs none."""
        if self._pace is None or isinstance(action, Tell | Work):
            return
        bucket = self._buckets.setdefault(by, Bucket(self._pace))
        if wait := bucket.wait(self._clock.boottime()):
            await self._clock.sleep(wait)

    async def _act(self, action: Action, by: str) -> int | None:
        match action:
            case Create():
                return await self._create(action, by)
            case Patch(ref, body, subresource, uid, revision, strategic):
                conditions = {"uid": uid, "resourceVersion": revision}
                metadata = {**body.get("metadata", {}), **{name: said for name, said in conditions.items() if said}}
                whole = {**body, "metadata": metadata} if metadata else body
                patched = await self._writing(by, ref.resource).patch(
                    self._named(ref.resource).read_as(resources.Written),
                    ref.name,
                    whole,
                    namespace=ref.namespace,
                    subresource=subresource,
                    kind=STRATEGIC if strategic else MERGE,
                )
                return _number(patched.metadata.resource_version)
            case Delete():
                return await self._delete(action, by)
            case Bind(ref, uid, node, event):
                binding = {"metadata": {"name": ref.name, "uid": uid}, "target": {"kind": "Node", "name": node}}
                client = self._writing(by, ref.resource)
                await client.create_below(resources.PODS, ref.name, "binding", binding, namespace=ref.namespace)
                if event:
                    await self._tell(event, by, event.message)
                return None
            case Finalize(ref):
                client = self._writing(by, ref.resource)
                found: Object = await client.get(resources.NAMESPACES, ref.name)
                found["spec"]["finalizers"] = []
                await client.update(resources.NAMESPACES, ref.name, found, subresource="finalize")
                return None
            case IfGone(owners, then):
                for place, uid in owners:
                    await self._confirm_gone(place, uid, by)
                return await self._act(then, by)
            case Work(verb, arguments):
                await verb(*arguments)
                return None
            case Tell():
                await self._tell(action, by, action.message)
                return None

    async def _create(self, action: Create, by: str) -> int | None:
        """In a namespace that is being deleted, that nothing is made any more is no failure."""
        event, refused = action.event, action.refused
        try:
            made = await self._writing(by, action.resource).create(
                self._named(action.resource).read_as(resources.Written), action.obj, namespace=action.namespace
            )
        except (Refused, ApiNotPermitted) as error:
            if any(cause.get("reason") == "NamespaceTerminating" for cause in error.details.get("causes") or ()):
                return None
            if refused:
                await self._tell(refused, by, refused.message.format(error=error))
            raise
        if event:
            await self._tell(event, by, event.message.format(name=made.metadata.name))
        return _number(made.metadata.resource_version)

    async def _delete(self, action: Delete, by: str) -> int | None:
        place = action.ref
        try:
            answer = await self._writing(by, place.resource).delete(
                self._named(place.resource),
                place.name,
                namespace=place.namespace,
                uid=action.uid,
                grace=action.grace,
                propagation=action.propagation,
            )
        except (Refused, ApiNotPermitted) as error:
            if action.refused:
                await self._tell(action.refused, by, action.refused.message.format(error=error))
            raise
        return _number(answer["metadata"].get("resourceVersion", ""))

    async def _confirm_gone(self, place: Ref, uid: str, by: str) -> None:
        """Unavailable if it is there."""
        try:
            found = await self._writing(by, place.resource).get(
                self._named(place.resource), place.name, namespace=place.namespace
            )
        except NotFound:
            return
        if found["metadata"]["uid"] == uid:
            raise Unavailable(f"{'/'.join(place)} is there, although it has not been seen yet")

    async def _tell(self, tell: Tell, by: str, message: str) -> None:
        """A new event, or one more of an old one (``k8s.io/client-go/tools/record``)."""
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
            name = f"{tell.about.name}.{_hash(key, now)}"
            await client.create(_EVENTS, _event(tell, by, message, now, name), namespace=namespace)
        self._told[key] = (name, count + 1)

    def _named(self, resource: str) -> resources.Resource[Any]:
        """By its qualified name, in the version in which it is served."""
        plural, _, group = resource.partition(".")
        return resources.resource(group, self._versions.get(resource, "v1"), plural)


def _number(revision: str) -> int:
    return int(revision or 0)


def _revision(obj: Object | None) -> int:
    return int(obj["metadata"]["resourceVersion"]) if obj else 0


def _hash(key: tuple[str, ...], now: str) -> str:
    return hashlib.sha256("\0".join((*key, now)).encode()).hexdigest()[:16]


def _event(tell: Tell, by: str, message: str, now: str, name: str) -> Object:
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
