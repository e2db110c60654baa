"""``ports.cluster.PodEndpoints``: the EndpointSlices of a node's pods, watched while the node shuts down.

EndpointSlices cannot be selected by node, so all slices of the pods' namespaces are read. At other times no agent
watches them: with one watch for each node, every change of a slice would be sent as often as there are nodes.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import Informer
from lastcall.adapters.kube.resources import ENDPOINT_SLICES
from lastcall.aio import Signal, cancel_and_wait
from lastcall.model.pods import Pod
from lastcall.model.traffic import EndpointSlice, uids_with_traffic
from lastcall.ports.node import Clock

_SLICES = ENDPOINT_SLICES.with_shape(EndpointSlice)


class KubePodEndpoints:
    """Lists and watches the slices of the started namespaces. Needs the verbs list and watch on EndpointSlices."""

    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._namespaces: dict[str, asyncio.Task[None]] = {}
        self._ready: dict[str, frozenset[str]] = {}
        self._changed = Signal()

    def start(self, namespaces: Iterable[str]) -> None:
        """Starts one watch for each namespace that has none."""
        for namespace in sorted(namespaces):
            if namespace not in self._namespaces:
                self._namespaces[namespace] = asyncio.create_task(self._follow(namespace), name=f"slices {namespace}")

    def receives_traffic(self, pod: Pod) -> bool | None:
        """By the pod's uid; a pod in no slice receives no traffic through Services."""
        ready = self._ready.get(pod.metadata.namespace)
        return None if ready is None else pod.metadata.uid in ready

    def next_change(self) -> "asyncio.Future[None]":
        """Done at the next list or change of any started namespace."""
        return self._changed.next()

    async def stop(self) -> None:
        """Ends the watches and forgets the slices."""
        tasks = [*self._namespaces.values()]
        self._namespaces.clear()
        await cancel_and_wait(*tasks)
        self._ready.clear()

    async def _follow(self, namespace: str) -> None:
        informer = Informer(self._client, _SLICES, clock=self._clock, random=self._random, namespace=namespace)
        async with contextlib.aclosing(informer.changes()) as changes:
            async for change in changes:
                if change.key.name and namespace not in self._ready:
                    continue  # the first list is not complete
                slices = informer.objects.values()
                self._ready[namespace] = frozenset().union(*map(uids_with_traffic, slices))
                self._changed.set()
