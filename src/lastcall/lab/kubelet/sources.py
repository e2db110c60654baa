"""ConfigMaps, Secrets and Services as a kubelet knows them; what it has seen once it knows while the server is away."""

import asyncio
from collections.abc import Sequence
from functools import partial
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import CONFIG_MAPS, SERVICES, Object, resource
from lastcall.adapters.kube.watching import Watching
from lastcall.aio import first
from lastcall.errors import NotFound, Unavailable
from lastcall.lab.kubelet import environment
from lastcall.lab.kubelet.environment import Source
from lastcall.ports import Clock

SECRETS = resource("", "v1", "secrets")
_RESOURCES = {"configmap": CONFIG_MAPS, "secret": SECRETS}


class Sources:
    """``run`` keeps the Services that the node's pods want; the rest is asked for when it is needed.

    Every container is told of ``kubernetes``, so that it is kept always; the others are from when the first pod wants
    them: a kubelet whose pods want none does not hear of thousands.
    """

    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self._client = client
        watching = partial(Watching, client, SERVICES, clock=clock, random=random, shared=True)
        namespace, name = environment.MASTER
        self._master = _Kept(watching(namespace=namespace, fields=f"metadata.name={name}"))
        self._services = _Kept(watching())
        self._wanted = asyncio.Event()
        self._seen: dict[tuple[str, Source], Object | None] = {}

    async def run(self) -> None:
        """Until cancelled."""
        await first(self._master.run(), self._follow())

    async def _follow(self) -> None:
        await self._wanted.wait()
        await self._services.run()

    def heed(self, pod: Object) -> None:
        """A pod is on the node: what it may want is known from soon after, also while the server is away."""
        if environment.linked(pod):
            self._wanted.set()

    async def services(self, pod: Object) -> Sequence[Object]:
        """Those of which its containers are told, and maybe others, by namespace and name.

        While none have been read yet they are waited for (``kubelet_pods.go``: ``serviceHasSynced``).
        """
        self.heed(pod)
        return await (self._services if environment.linked(pod) else self._master).objects()

    async def get(self, namespace: str, source: Source) -> Object | None:
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


class _Kept:
    """The objects of a watch, once they have been listed."""

    def __init__(self, watching: Watching[Object]) -> None:
        self._watching = watching
        self._listed = asyncio.Event()

    async def run(self) -> None:
        async for _ in self._watching.changes():
            self._listed.set()  # all that a list says is known before the first of it is told

    async def objects(self) -> Sequence[Object]:
        await self._listed.wait()
        known = self._watching.objects
        return [known[key] for key in sorted(known)]
