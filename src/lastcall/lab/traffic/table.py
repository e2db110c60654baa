"""What one node knows of Services and their endpoints: by its own watch, and a while later than the API server.

Between a pod's being taken out of an EndpointSlice and the last node's knowing it, connections still go to it; that
while is settable, so that a rehearsal can have the lag of a real cluster.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import ENDPOINT_SLICES, SERVICES, Object
from lastcall.adapters.kube.watching import Change, Key, Kind, Watching
from lastcall.aio import Group
from lastcall.model.traffic import Endpoint, endpoints
from lastcall.ports import Clock

SERVICE_NAME = "kubernetes.io/service-name"


class Table:
    """``delay`` is how many seconds after the API server a change is known here. ``on_change`` hears of each then."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        *,
        delay: float,
        on_change: Callable[[Change[Any]], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._on_change = on_change
        self._services: dict[Key, Object] = {}
        self._slices: dict[Key, dict[Key, Object]] = {}
        """Of each Service."""
        self.delay = delay

    async def run(self) -> None:
        """Until cancelled."""
        group = Group()
        for resource, learn in ((SERVICES, self._learn_service), (ENDPOINT_SLICES, self._learn_slice)):
            late: asyncio.Queue[tuple[float, Change[Any]]] = asyncio.Queue()
            watching = Watching(self._client, resource, clock=self._clock, random=self._random, shared=True)
            group.start(self._hear(watching, late), f"hear of {resource.plural}")
            group.start(self._learn(learn, late), f"learn of {resource.plural}")
        try:
            await group.join()
        finally:
            await group.cancel()

    @property
    def services(self) -> Sequence[Object]:
        """Those that are known, by namespace and name."""
        return [self._services[key] for key in sorted(self._services)]

    def endpoints(self, namespace: str, service: str, port: str) -> Sequence[Endpoint]:
        """Where a new connection may go now."""
        return endpoints(self._slices.get(Key(namespace, service), {}).values(), port)

    async def _hear(self, watching: Watching[Object], late: "asyncio.Queue[tuple[float, Change[Any]]]") -> None:
        async for change in watching.changes():
            late.put_nowait((self._clock.boottime() + self.delay, change))

    async def _learn(
        self, learn: Callable[[Change[Any]], None], late: "asyncio.Queue[tuple[float, Change[Any]]]"
    ) -> None:
        while True:
            due, change = await late.get()
            await self._clock.sleep(due - self._clock.boottime())
            learn(change)
            self._on_change(change)

    def _learn_service(self, change: Change[Any]) -> None:
        _learn(self._services, change)

    def _learn_slice(self, change: Change[Any]) -> None:
        for one in (change.old, change.new):
            if service := service_of(one):
                known = self._slices.setdefault(service, {})
                if one is change.new:
                    _learn(known, change)
                else:
                    known.pop(change.key, None)


def service_of(endpoint_slice: Object | None) -> Key | None:
    """The Service that a slice belongs to."""
    metadata = (endpoint_slice or {}).get("metadata") or {}
    name = (metadata.get("labels") or {}).get(SERVICE_NAME)
    return Key(metadata.get("namespace", ""), name) if name else None


def _learn(known: dict[Key, Object], change: Change[Any]) -> None:
    if change.kind is Kind.DELETED:
        known.pop(change.key, None)
    elif change.new is not None:
        known[change.key] = change.new
