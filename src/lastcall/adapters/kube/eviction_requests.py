"""EvictionRequests and Evictions at the API server (``lifecycle.k8s.io/v1alpha1``)."""

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Any, Final

import msgspec

from lastcall.adapters.kube.client import STRATEGIC, Client
from lastcall.adapters.kube.informer import ChangeKind, Informer, WatchChange
from lastcall.adapters.kube.resources import PODS, Object, WrittenObject, dict_resource
from lastcall.aio import ChangeCounter, wait_first
from lastcall.errors import NotFound
from lastcall.model.eviction_requests import (
    API_VERSION,
    GROUP,
    VERSION,
    EvictablePod,
    EvictionCondition,
    EvictionIntent,
    EvictionRequest,
    EvictionRequestSpec,
    EvictionRequestStatus,
    EvictionStatus,
    PodEviction,
    ResponderProgress,
)
from lastcall.model.pods import ObjectMetadata, OwnerReference
from lastcall.ports.node import Clock

EVICTIONS: Final = dict_resource(GROUP, VERSION, "evictions").with_shape(PodEviction)
REQUESTS: Final = dict_resource(GROUP, VERSION, "evictionrequests").with_shape(EvictionRequest)
_PODS = PODS.with_shape(EvictablePod)


class KubeEvictionObjects:
    """``ports.eviction_requests.EvictionObjects``. Needs list and watch on what it follows.

    Without ``with_requests`` it follows Evictions alone.
    """

    def __init__(self, client: Client, clock: Clock, random: Random, *, with_requests: bool) -> None:
        self._client, self._clock, self._random = client, clock, random
        self._with_requests = with_requests
        self._evictions = Informer(client, EVICTIONS, clock=clock, random=random)
        self._requests = Informer(client, REQUESTS, clock=clock, random=random)
        self._unlisted: set[str] = set()
        self._changes = ChangeCounter(-1)

    @property
    def evictions(self) -> Sequence[PodEviction]:
        """``EvictionObjects.evictions``."""
        return [one for _, one in sorted(self._evictions.objects.items())]

    @property
    def requests(self) -> Sequence[EvictionRequest]:
        """``EvictionObjects.requests``."""
        return [one for _, one in sorted(self._requests.objects.items())]

    @property
    def changes(self) -> int:
        """``EvictionObjects.changes``."""
        return self._changes.count

    async def wait_for_change(self, seen: int) -> int:
        """``EvictionObjects.wait_for_change``."""
        return await self._changes.wait_for_change(seen)

    async def run(self) -> None:
        """``EvictionObjects.run``. It begins anew each time: what another leader has done since is not missed."""
        self._changes.restart()
        self._evictions = Informer(self._client, EVICTIONS, clock=self._clock, random=self._random)
        self._requests = Informer(self._client, REQUESTS, clock=self._clock, random=self._random)
        parts = [self._follow(EVICTIONS.plural, self._evictions.changes())]
        if self._with_requests:
            parts.append(self._follow(REQUESTS.plural, self._requests.changes()))
        self._unlisted = {EVICTIONS.plural, *([REQUESTS.plural] if self._with_requests else [])}
        await wait_first(*parts)

    async def _follow(self, plural: str, changes: AsyncGenerator[WatchChange[Any], None]) -> None:
        async for change in changes:
            if change.kind is ChangeKind.SYNCED:
                self._unlisted.discard(plural)
            if not self._unlisted:
                self._changes.add()


class KubeEvictionCluster:
    """``ports.eviction_requests.EvictionCluster``."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def is_served(self) -> bool:
        """``EvictionCluster.is_served``. Needs list on evictions."""
        try:
            async with contextlib.aclosing(self._client.list_pages(EVICTIONS, limit=1)) as pages:
                await anext(pages)
        except NotFound:
            return False
        return True

    async def find_pod(self, namespace: str, name: str) -> EvictablePod | None:
        """``EvictionCluster.find_pod``."""
        try:
            return await self._client.get(_PODS, name, namespace=namespace)
        except NotFound:
            return None

    async def find_eviction(self, namespace: str, name: str) -> PodEviction | None:
        """``EvictionCluster.find_eviction``."""
        try:
            return await self._client.get(EVICTIONS, name, namespace=namespace)
        except NotFound:
            return None

    async def list_requests(self, namespace: str) -> Sequence[EvictionRequest]:
        """``EvictionCluster.list_requests``."""
        return (await self._client.list(REQUESTS, namespace=namespace)).items

    async def create_eviction(self, request: EvictionRequest, name: str) -> None:
        """``EvictionCluster.create_eviction``."""
        metadata = request.metadata
        owner = OwnerReference(api_version=API_VERSION, kind="EvictionRequest", name=metadata.name, uid=metadata.uid)
        eviction = {
            "apiVersion": API_VERSION,
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": metadata.namespace, "ownerReferences": [_json_object(owner)]},
            "spec": {"target": _json_object(request.spec.target)},
        }
        await self._client.create(EVICTIONS.with_shape(WrittenObject), eviction, namespace=metadata.namespace)

    async def write_status(self, eviction: PodEviction, status: EvictionStatus) -> None:
        """``EvictionCluster.write_status``."""
        kept = {one.name for one in status.requesters}
        dropped = [one.name for one in eviction.status.requesters if one.name not in kept]
        said = {
            "conditions": _condition_objects(status.conditions),
            "observedGeneration": status.observed_generation,
            "requesters": [
                *map(_json_object, status.requesters),
                *({"name": name, "$patch": "delete"} for name in dropped),
            ],
            "targetResponders": [_json_object(one) for one in status.target_responders],
            "responders": [_start_object(one) for one in status.responders],
        }
        await self._patch(eviction, {"status": said}, "status")

    async def write_progress(self, eviction: PodEviction, progress: ResponderProgress) -> None:
        """``EvictionCluster.write_progress``."""
        said = {
            "name": progress.name,
            "heartbeatTime": _time_text(progress.heartbeat_time),
            "expectedCompletionTime": _time_text(progress.expected_completion_time),
            "completionTime": _time_text(progress.completion_time),
            "message": progress.message,
        }
        await self._patch(eviction, {"status": {"responders": [said]}}, "status")

    async def write_metadata(
        self, eviction: PodEviction, labels: Mapping[str, str | None], owners: Sequence[OwnerReference]
    ) -> None:
        """``EvictionCluster.write_metadata``."""
        metadata: Object = {"labels": dict(labels)} if labels else {}
        if owners:
            metadata["ownerReferences"] = [_json_object(one) for one in owners]
        await self._patch(eviction, {"metadata": metadata}, "")

    async def write_request_status(self, request: EvictionRequest, status: EvictionRequestStatus) -> None:
        """``EvictionCluster.write_request_status``."""
        said = {"conditions": _condition_objects(status.conditions), "observedGeneration": status.observed_generation}
        await self._client.patch(
            REQUESTS.with_shape(WrittenObject),
            request.metadata.name,
            {"metadata": _precondition(request.metadata), "status": said},
            namespace=request.metadata.namespace,
            subresource="status",
            kind=STRATEGIC,
        )

    async def evict(self, pod: EvictablePod) -> None:
        """``EvictionCluster.evict``."""
        await self._client.evict(pod.metadata.name, namespace=pod.metadata.namespace, uid=pod.metadata.uid)

    async def _patch(self, eviction: PodEviction, patch: Object, subresource: str) -> None:
        whole = {**patch, "metadata": {**patch.get("metadata", {}), **_precondition(eviction.metadata)}}
        await self._client.patch(
            EVICTIONS.with_shape(WrittenObject),
            eviction.metadata.name,
            whole,
            namespace=eviction.metadata.namespace,
            subresource=subresource,
            kind=STRATEGIC,
        )


class KubeEvictionRequests:
    """``ports.eviction_requests.EvictionRequests``. Needs create, get, patch and delete on evictionrequests."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create_request(self, namespace: str, name: str, spec: EvictionRequestSpec) -> None:
        """``EvictionRequests.create_request``. The pod owns the request, so that the garbage collector removes it."""
        pod = spec.target.pod
        owners = [{"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}] if pod else []
        request = {
            "apiVersion": API_VERSION,
            "kind": "EvictionRequest",
            "metadata": {"name": name, "namespace": namespace, "ownerReferences": owners},
            "spec": _json_object(spec),
        }
        await self._client.create(REQUESTS.with_shape(WrittenObject), request, namespace=namespace)

    async def find_request(self, namespace: str, name: str) -> EvictionRequest | None:
        """``EvictionRequests.find_request``."""
        try:
            return await self._client.get(REQUESTS, name, namespace=namespace)
        except NotFound:
            return None

    async def set_intent(self, request: EvictionRequest, intent: EvictionIntent) -> None:
        """``EvictionRequests.set_intent``."""
        await self._client.patch(
            REQUESTS.with_shape(WrittenObject),
            request.metadata.name,
            {"metadata": _precondition(request.metadata), "spec": {"intent": intent.value}},
            namespace=request.metadata.namespace,
        )

    async def delete_request(self, request: EvictionRequest) -> None:
        """``EvictionRequests.delete_request``."""
        metadata = request.metadata
        try:
            await self._client.delete(REQUESTS, metadata.name, namespace=metadata.namespace, uid=metadata.uid)
        except NotFound:
            return


def _precondition(metadata: ObjectMetadata) -> Object:
    return {"uid": metadata.uid, "resourceVersion": metadata.resource_version}


def _json_object(facts: msgspec.Struct) -> Object:
    """As JSON, without fields that say nothing."""
    found: Object = msgspec.to_builtins(facts)
    return {name: value for name, value in found.items() if value is not None and value != ""}


def _start_object(one: ResponderProgress) -> Object:
    return {"name": one.name, **({"startTime": _time_text(one.start_time)} if one.start_time else {})}


def _condition_objects(conditions: Sequence[EvictionCondition]) -> list[Object]:
    return [
        {
            "type": one.type,
            "status": one.status,
            "reason": one.reason,
            "message": one.message,
            "lastTransitionTime": _time_text(one.last_transition_time),
        }
        for one in conditions
    ]


def _time_text(at: datetime | None) -> str | None:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}" if at else None
