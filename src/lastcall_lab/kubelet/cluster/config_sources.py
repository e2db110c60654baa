"""ConfigMaps, Secrets and Services as the kubelet sees them, cached for while the API server is unreachable."""

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
    """``run`` watches the Services that the node's pods need; other objects are read on demand.

    Every container gets variables for the Service ``kubernetes``. Once found, it is not read again, because its address
    never changes during the life of the cluster. The watch on all other Services starts with the first pod that needs
    them, so that a kubelet whose pods need none does not receive thousands.
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
            self._all_read.set()  # store the whole list before the first change is handled

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
        """Starts to cache what this new pod of the node may need, so that it is available while the server is away."""
        if environment.has_service_links(pod):
            self._wanted.set()

    async def services_for(self, pod: Object) -> Sequence[Object]:
        """The Services whose variables the pod's containers get, and possibly others, by namespace and name.

        Waits until the Services have been listed once (``kubelet_pods.go``: ``serviceHasSynced``). If ``kubernetes``
        did not exist at the last read, reads it again: the real kubelet watches all Services and would have received
        it.
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
        """The current object, None if it does not exist. Unavailable if the server is away and nothing is cached."""
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
