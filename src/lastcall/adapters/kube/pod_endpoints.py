"""``ports.cluster.PodEndpoints`` and ``ports.traffic.NamespaceSlices``: EndpointSlices, watched while pods leave.

EndpointSlices cannot be selected by node, so all slices of the pods' namespaces are read. At other times no agent
watches them: with one watch for each node, every change of a slice would be sent as often as there are nodes.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.adapters.kube.resources import ENDPOINT_SLICES
from lastcall.aio import Signal, cancel_and_wait
from lastcall.errors import ApiNotPermitted, LastcallError
from lastcall.model.pods import Pod
from lastcall.model.traffic import EndpointSlice, TrafficTargets, find_targets
from lastcall.ports.node import Clock

log = logging.getLogger(__name__)

WATCH_AFTER_SECONDS = 0.02
"""How long the first SIGTERMs have the CPU after the first look, in seconds: what withdraws pods is written later."""

_SLICES = ENDPOINT_SLICES.with_shape(EndpointSlice)


class KubePodEndpoints:
    """Lists and watches the slices of the started namespaces. Needs the verbs list and watch on EndpointSlices.

    Without these rights no pod counts as one that receives traffic. ``client`` as for ``KubeNodeObjects``.
    """

    def __init__(self, client: Callable[[], Client | None], clock: Clock, random: Random) -> None:
        self._find_client = client
        self._clock = clock
        self._random = random
        self._namespaces: dict[str, asyncio.Task[None]] = {}
        self._ready: dict[str, TrafficTargets] = {}
        self._slices: dict[str, Sequence[EndpointSlice]] = {}
        self._changed = Signal()

    def start(self, namespaces: Iterable[str]) -> None:
        """Starts one watch for each namespace that has none."""
        for namespace in sorted(namespaces):
            if namespace not in self._namespaces:
                self._namespaces[namespace] = asyncio.create_task(self._follow(namespace), name=f"slices {namespace}")

    def receives_traffic(self, pod: Pod) -> bool | None:
        """A pod in no slice receives no traffic through Services."""
        ready = self._ready.get(pod.metadata.namespace)
        return None if ready is None else ready.includes(pod)

    def slices_of(self, namespace: str) -> Sequence[EndpointSlice] | None:
        """None also without the rights."""
        return self._slices.get(namespace)

    def next_change(self) -> "asyncio.Future[None]":
        """Done at the next list or change of any started namespace."""
        return self._changed.next()

    async def stop(self) -> None:
        """Ends the watches and forgets the slices."""
        tasks = [*self._namespaces.values()]
        self._namespaces.clear()
        await cancel_and_wait(*tasks)
        self._ready.clear()
        self._slices.clear()

    async def _follow(self, namespace: str) -> None:
        client = self._find_client()
        informer = client and Informer(client, _SLICES, clock=self._clock, random=self._random, namespace=namespace)
        if informer and await self._list_once(informer, namespace):
            await self._clock.sleep(WATCH_AFTER_SECONDS)
            async with contextlib.aclosing(informer.changes()) as changes:
                synced = bool(informer.revision)
                async for change in changes:
                    synced = synced or change.kind is ChangeKind.SYNCED
                    if synced:
                        self._set_slices(namespace, [*informer.objects.values()])
        else:
            self._ready[namespace] = TrafficTargets()
            self._changed.set()

    async def _list_once(self, informer: Informer[EndpointSlice], namespace: str) -> bool:
        """The first look, for which SIGTERMs wait; returns whether the rights are there.

        A failure that may pass is left to the informer, which lists again before it watches.
        """
        try:
            await informer.list_changes()
            self._set_slices(namespace, [*informer.objects.values()])
        except ApiNotPermitted as error:
            log.info("no SIGTERM waits for EndpointSlices in %s: %s", namespace, error)
            return False
        except LastcallError as error:
            log.debug("EndpointSlices in %s: %s", namespace, error)
        return True

    def _set_slices(self, namespace: str, found: Sequence[EndpointSlice]) -> None:
        self._slices[namespace] = found
        self._ready[namespace] = find_targets(found)
        self._changed.set()
