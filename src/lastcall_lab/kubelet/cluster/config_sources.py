"""ConfigMaps, Secrets and Services as a kubelet knows them; what it has seen once it knows while the server is away."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import Informer
from lastcall.adapters.kube.resources import CONFIG_MAPS, SERVICES, Object, dict_resource
from lastcall.errors import LastcallError, NotFound, Unavailable
from lastcall.ports.node import Clock
from lastcall_lab.kubelet.spec import environment
from lastcall_lab.kubelet.spec.environment import ConfigSource

log = logging.getLogger(__name__)

SECRETS = dict_resource("", "v1", "secrets")
_RESOURCES = {"configmap": CONFIG_MAPS, "secret": SECRETS}


class ConfigSources:
    """``run`` keeps the Services that the node's pods want; the rest is asked for when it is needed.

    Every container is told of ``kubernetes``: once that has been found it is not read again, since its address stays for
    as long as the cluster.
    The others are watched from when the first pod wants them: a kubelet whose pods want none does not hear of thousands.
    """

    def __init__(self, client: Client, clock: Clock, random: Random, *, retry: float) -> None:
        self._client = client
        self._clock = clock
        self._retry = retry
        self._master: list[Object] = []
        self._services = Informer(client, SERVICES, clock=clock, random=random, shared=True)
        self._wanted = asyncio.Event()
        self._master_read = asyncio.Event()
        self._all_read = asyncio.Event()
        self._seen: dict[tuple[str, ConfigSource], Object | None] = {}

    async def run(self) -> None:
        """Until cancelled."""
        await self._keep_master_service()
        await self._wanted.wait()
        async for _ in self._services.changes():
            self._all_read.set()  # all that a list says is known before the first of it is told

    async def _keep_master_service(self) -> None:
        told = ""
        while not self._master_read.is_set():
            try:
                await self._read_master_service()
                self._master_read.set()
            except LastcallError as error:
                if told != str(error):
                    told = str(error)
                    log.warning("the Service %s cannot be read: %s", environment.MASTER[1], error)
                await self._clock.sleep(self._retry)

    async def _read_master_service(self) -> None:
        namespace, name = environment.MASTER
        with contextlib.suppress(NotFound):
            self._master = [await self._client.get(SERVICES, name, namespace=namespace)]

    def watch_for_pod(self, pod: Object) -> None:
        """A pod is on the node: what it may want is known from soon after, also while the server is away."""
        if environment.has_service_links(pod):
            self._wanted.set()

    async def services_for(self, pod: Object) -> Sequence[Object]:
        """Those of which its containers are told, and maybe others, by namespace and name.

        While none have been read yet they are waited for (``kubelet_pods.go``: ``serviceHasSynced``). A ``kubernetes``
        that was not there is asked for again: the kubelet, whose cache watches all Services, would have heard of it.
        """
        self.watch_for_pod(pod)
        if not environment.has_service_links(pod):
            await self._master_read.wait()
            if not self._master:
                with contextlib.suppress(Unavailable):
                    await self._read_master_service()
            return self._master
        await self._all_read.wait()
        known = self._services.objects
        return [known[key] for key in sorted(known)]

    async def get(self, namespace: str, source: ConfigSource) -> Object | None:
        """As it is now; None if there is none. Unavailable if that was never known."""
        try:
            found: Object | None = await self._client.get(_RESOURCES[source.kind], source.name, namespace=namespace)
        except NotFound:
            found = None
        except Unavailable:
            if (namespace, source) not in self._seen:
                raise
            return self._seen[namespace, source]
        self._seen[namespace, source] = found
        return found
