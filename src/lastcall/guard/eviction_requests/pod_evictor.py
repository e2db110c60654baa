"""The responder ``imperative-eviction.k8s.io/evictor``: evicts pods when all their other responders are done."""

import logging
from datetime import UTC, datetime

from lastcall.errors import LastcallError
from lastcall.guard.eviction_requests.decisions.imperative_evictor import (
    EvictionAttempts,
    count_refusal,
    decide_evictor,
    is_evictors_turn,
    is_wanted,
)
from lastcall.guard.eviction_requests.each_object import skip_failure
from lastcall.model.eviction_requests import EvictablePod, PodEviction
from lastcall.ports.eviction_requests import EvictionCluster, EvictionObjects
from lastcall.ports.node import Clock

log = logging.getLogger(__name__)


class PodEvictor:
    """One round looks at every Eviction. The number of tries is this process's own: a new leader begins anew."""

    def __init__(self, objects: EvictionObjects, cluster: EvictionCluster, clock: Clock) -> None:
        self._objects = objects
        self._cluster = cluster
        self._clock = clock
        self._attempts: dict[str, EvictionAttempts] = {}
        """By the Eviction's uid."""

    async def run_round(self) -> None:
        """Evicts what is due, and reports."""
        evictions = self._objects.evictions
        known = {one.metadata.uid for one in evictions if not one.is_over}
        self._attempts = {uid: one for uid, one in self._attempts.items() if uid in known}
        for eviction in evictions:
            if not eviction.is_over:
                async with skip_failure("Eviction", eviction.metadata):
                    await self._advance(eviction)

    async def _advance(self, eviction: PodEviction) -> None:
        target = eviction.spec.target.pod
        attempts = self._attempts.get(eviction.metadata.uid, EvictionAttempts())
        if target is None or not is_evictors_turn(eviction):
            return
        pod = await self._cluster.find_pod(eviction.metadata.namespace, target.name)
        turn = decide_evictor(eviction, pod, attempts, self._now())
        if turn.is_evicting and pod is not None:
            if await self._is_due_now(eviction, pod, attempts):
                await self._evict(eviction, pod, attempts)
        elif turn.progress is not None:
            await self._cluster.write_progress(eviction, turn.progress)

    async def _is_due_now(self, eviction: PodEviction, pod: EvictablePod, attempts: EvictionAttempts) -> bool:
        """Whether it is due by what is stored now: what the watch tells may be old, and a pod does not come back."""
        namespace, name = eviction.metadata.namespace, eviction.metadata.name
        stored = await self._cluster.find_eviction(namespace, name)
        if stored is None or stored.metadata.uid != eviction.metadata.uid:
            return False
        requests = await self._cluster.list_requests(namespace)
        return is_wanted(stored, requests) and decide_evictor(stored, pod, attempts, self._now()).is_evicting

    async def _evict(self, eviction: PodEviction, pod: EvictablePod, attempts: EvictionAttempts) -> None:
        where = f"{pod.metadata.namespace}/{pod.metadata.name}"
        try:
            await self._cluster.evict(pod)
        except LastcallError as error:
            log.info("pod %s is not evicted yet: %s", where, error)
            self._attempts[eviction.metadata.uid] = count_refusal(attempts, str(error), self._now())
            return
        log.info("pod %s is evicted, as its EvictionRequests want", where)
        self._attempts.pop(eviction.metadata.uid, None)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.wall(), UTC)
