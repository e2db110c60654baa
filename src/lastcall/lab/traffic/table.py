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
    """``delay`` is how many seconds after the API server a change is known here. ``on_change`` hears of each."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        *,
        delay: float,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._on_change = on_change
        self._known: dict[str, dict[Key, Object]] = {"services": {}, "endpointslices": {}}
        self.delay = delay

    async def run(self) -> None:
        """Until cancelled."""
        group = Group()
        for resource in (SERVICES, ENDPOINT_SLICES):
            late: asyncio.Queue[tuple[float, Change[Any]]] = asyncio.Queue()
            watching = Watching(self._client, resource, clock=self._clock, random=self._random)
            group.start(self._hear(watching, late), f"hear of {resource.plural}")
            group.start(self._learn(resource.plural, late), f"learn of {resource.plural}")
        try:
            await group.join()
        finally:
            await group.cancel()

    @property
    def services(self) -> Sequence[Object]:
        """Those that are known, by namespace and name."""
        known = self._known["services"]
        return [known[key] for key in sorted(known)]

    def endpoints(self, namespace: str, service: str, port: str) -> Sequence[Endpoint]:
        """Where a new connection may go now."""
        slices = [
            one
            for key, one in self._known["endpointslices"].items()
            if key.namespace == namespace and (one["metadata"].get("labels") or {}).get(SERVICE_NAME) == service
        ]
        return endpoints(slices, port)

    async def _hear(self, watching: Watching[Object], late: "asyncio.Queue[tuple[float, Change[Any]]]") -> None:
        async for change in watching.changes():
            late.put_nowait((self._clock.boottime() + self.delay, change))

    async def _learn(self, plural: str, late: "asyncio.Queue[tuple[float, Change[Any]]]") -> None:
        known = self._known[plural]
        while True:
            due, change = await late.get()
            await self._clock.sleep(due - self._clock.boottime())
            if change.kind is Kind.DELETED:
                known.pop(change.key, None)
            elif change.new is not None:
                known[change.key] = change.new
            self._on_change()
