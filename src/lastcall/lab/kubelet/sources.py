"""ConfigMaps, Secrets and Services as a kubelet knows them; what it has seen once it knows while the server is away."""

from collections.abc import Sequence
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import CONFIG_MAPS, SERVICES, Object, resource
from lastcall.adapters.kube.watching import Watching
from lastcall.errors import NotFound, Unavailable
from lastcall.lab.kubelet.environment import Source
from lastcall.ports import Clock

SECRETS = resource("", "v1", "secrets")
_RESOURCES = {"configmap": CONFIG_MAPS, "secret": SECRETS}


class Sources:
    """``run`` keeps the Services; the rest is asked for when it is needed."""

    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self._client = client
        self._services = Watching(client, SERVICES, clock=clock, random=random, shared=True)
        self._seen: dict[tuple[str, Source], Object | None] = {}

    async def run(self) -> None:
        """Until cancelled."""
        async for _ in self._services.changes():
            pass

    @property
    def services(self) -> Sequence[Object]:
        """Those that are known, by namespace and name."""
        known = self._services.objects
        return [known[key] for key in sorted(known)]

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
