"""The controller of EvictionRequests: makes Evictions of them, gives responders their turns, and says what became of it."""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from lastcall.errors import AlreadyExists
from lastcall.guard.eviction_requests.decisions.eviction_metadata import decide_metadata
from lastcall.guard.eviction_requests.decisions.eviction_outcomes import decide_eviction
from lastcall.guard.eviction_requests.decisions.request_outcomes import decide_request, find_relevant, is_settled
from lastcall.guard.eviction_requests.each_object import skip_failure
from lastcall.model.eviction_requests import EvictablePod, EvictionRequest, PodEviction
from lastcall.ports.eviction_requests import EvictionCluster, EvictionObjects
from lastcall.ports.node import Clock

TargetKey = tuple[str, str]
"""The namespace and uid of a pod."""

log = logging.getLogger(__name__)


class EvictionRequestController:
    """One round looks at everything. The state is in the objects alone, so that any later leader goes on."""

    def __init__(self, objects: EvictionObjects, cluster: EvictionCluster, clock: Clock) -> None:
        self._objects = objects
        self._cluster = cluster
        self._clock = clock
        self._gone_at: dict[TargetKey, datetime] = {}
        """When it was first seen that a target is gone."""

    async def run_round(self) -> None:
        """Takes the next step of every request and every eviction. Failures are logged, and tried again next time."""
        evictions, requests = self._objects.evictions, self._objects.requests
        by_target = _group_by_target(requests)
        self._gone_at = {key: at for key, at in self._gone_at.items() if key in {_key_of(one) for one in evictions}}
        for request in (one for one in requests if not is_settled(one)):
            async with skip_failure("EvictionRequest", request.metadata):
                await self._advance_request(request, by_target[_key_of(request)], evictions)
        for eviction in evictions:
            async with skip_failure("Eviction", eviction.metadata):
                await self._advance_eviction(eviction, by_target.get(_key_of(eviction), ()), evictions)

    async def _advance_request(
        self, request: EvictionRequest, requests: Sequence[EvictionRequest], evictions: Sequence[PodEviction]
    ) -> None:
        namespace = request.metadata.namespace
        near = [one for one in evictions if one.metadata.namespace == namespace]
        pod = await self._find_target(request, near)
        outcome = decide_request(request, requests, near, pod, self._now())
        if outcome.new_eviction:
            log.info("pod %s: %s requests its eviction", _title(request), request.spec.requester)
            try:
                await self._cluster.create_eviction(request, outcome.new_eviction)
            except AlreadyExists:
                return  # made meanwhile: the watch shows it
        if outcome.status is not None:
            await self._cluster.write_request_status(request, outcome.status)

    async def _find_target(self, request: EvictionRequest, evictions: Sequence[PodEviction]) -> EvictablePod | None:
        """A request with an Eviction follows that, and nothing of its pod has to be read."""
        target = request.spec.target.pod
        if target is None or any(one.spec.target == request.spec.target for one in evictions):
            return None
        return await self._cluster.find_pod(request.metadata.namespace, target.name)

    async def _advance_eviction(
        self, eviction: PodEviction, requests: Sequence[EvictionRequest], evictions: Sequence[PodEviction]
    ) -> None:
        if not eviction.is_over:
            await self._advance_status(eviction, requests, evictions)
        elif change := decide_metadata(eviction, requests):
            await self._cluster.write_metadata(eviction, change.labels, change.owners)

    async def _advance_status(
        self, eviction: PodEviction, requests: Sequence[EvictionRequest], evictions: Sequence[PodEviction]
    ) -> None:
        """The status first: the other write waits for the next round, since one makes the other's version old."""
        target = eviction.spec.target.pod
        pod = await self._cluster.find_pod(eviction.metadata.namespace, target.name) if target else None
        now, key = self._now(), _key_of(eviction)
        if target and (pod is None or pod.metadata.uid != target.uid or pod.is_terminal):
            self._gone_at.setdefault(key, now)
        same = [one for one in evictions if _key_of(one) == key]
        first = find_relevant([one for one in same if not one.is_over])
        outcome = decide_eviction(
            eviction,
            requests,
            pod,
            now,
            is_duplicate=first is not None and first.metadata.uid != eviction.metadata.uid,
            gone_at=self._gone_at.get(key),
        )
        if outcome.status is not None:
            await self._cluster.write_status(eviction, outcome.status)
        elif change := decide_metadata(eviction, requests):
            await self._cluster.write_metadata(eviction, change.labels, change.owners)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.wall(), UTC)


def _key_of(one: EvictionRequest | PodEviction) -> TargetKey:
    pod = one.spec.target.pod
    return one.metadata.namespace, pod.uid if pod else ""


def _group_by_target(requests: Sequence[EvictionRequest]) -> Mapping[TargetKey, Sequence[EvictionRequest]]:
    found: dict[TargetKey, list[EvictionRequest]] = defaultdict(list)
    for one in requests:
        found[_key_of(one)].append(one)
    return found


def _title(request: EvictionRequest) -> str:
    target = request.spec.target.pod
    return f"{request.metadata.namespace}/{target.name if target else ''}"
