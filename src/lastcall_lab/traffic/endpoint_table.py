"""A node's view of Services and their endpoints: from its own watch, with a delay after the API server.

After a pod is removed from an EndpointSlice, connections still reach it until the last node knows. The delay is
configurable, so that a rehearsal can match a real cluster.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import ChangeKind, Informer, ObjectKey, WatchChange
from lastcall.adapters.kube.resources import ENDPOINT_SLICES, SERVICES, Object
from lastcall.aio import OrderedTaskGroup
from lastcall.model.traffic import ServiceEndpoint, select_endpoints
from lastcall.ports.node import Clock

SERVICE_NAME = "kubernetes.io/service-name"


class EndpointTable:
    """A change becomes known here ``delay`` seconds after the API server's; ``on_change`` is called then."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        *,
        delay: float,
        on_change: Callable[[WatchChange[Any]], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._on_change = on_change
        self._services: dict[ObjectKey, Object] = {}
        self._slices: dict[ObjectKey, dict[ObjectKey, Object]] = {}
        """The endpoints of each Service."""
        self.delay = delay

    async def run(self) -> None:
        """Runs until cancelled."""
        group = OrderedTaskGroup()
        for resource, learn in ((SERVICES, self._learn_service), (ENDPOINT_SLICES, self._learn_slice)):
            late: asyncio.Queue[tuple[float, WatchChange[Any]]] = asyncio.Queue()
            watching = Informer(self._client, resource, clock=self._clock, random=self._random, shared=True)
            group.start(self._receive_changes(watching, late), f"hear of {resource.plural}")
            group.start(self._apply_changes(learn, late), f"learn of {resource.plural}")
        try:
            await group.join()
        finally:
            await group.cancel()

    @property
    def known_services(self) -> Sequence[Object]:
        """The known Services, by namespace and name."""
        return [self._services[key] for key in sorted(self._services)]

    def ready_endpoints(self, namespace: str, service: str, port: str) -> Sequence[ServiceEndpoint]:
        """The endpoints for a new connection now."""
        return select_endpoints(self._slices.get(ObjectKey(namespace, service), {}).values(), port)

    async def _receive_changes(
        self, watching: Informer[Object], late: "asyncio.Queue[tuple[float, WatchChange[Any]]]"
    ) -> None:
        async for change in watching.changes():
            late.put_nowait((self._clock.boottime() + self.delay, change))

    async def _apply_changes(
        self, learn: Callable[[WatchChange[Any]], None], late: "asyncio.Queue[tuple[float, WatchChange[Any]]]"
    ) -> None:
        while True:
            due, change = await late.get()
            await self._clock.sleep(due - self._clock.boottime())
            learn(change)
            self._on_change(change)

    def _learn_service(self, change: WatchChange[Any]) -> None:
        _apply_change(self._services, change)

    def _learn_slice(self, change: WatchChange[Any]) -> None:
        for one in (change.old, change.new):
            if service := service_of(one):
                known = self._slices.setdefault(service, {})
                if one is change.new:
                    _apply_change(known, change)
                else:
                    known.pop(change.key, None)


def service_of(endpoint_slice: Object | None) -> ObjectKey | None:
    """The Service that a slice belongs to."""
    metadata = (endpoint_slice or {}).get("metadata") or {}
    name = (metadata.get("labels") or {}).get(SERVICE_NAME)
    return ObjectKey(metadata.get("namespace", ""), name) if name else None


def _apply_change(known: dict[ObjectKey, Object], change: WatchChange[Any]) -> None:
    if change.kind is ChangeKind.DELETED:
        known.pop(change.key, None)
    elif change.new is not None:
        known[change.key] = change.new
