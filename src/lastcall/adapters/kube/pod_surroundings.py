"""What decides about new pods, read from the API server: the label of their namespace, and its Services."""

from collections.abc import Sequence

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.recent_reads import RecentReads
from lastcall.adapters.kube.resources import NAMESPACES, SERVICES
from lastcall.errors import NotFound
from lastcall.model.base import Facts
from lastcall.model.pod_creation import PodService
from lastcall.model.pods import ObjectMetadata
from lastcall.names import SETTLE_SECONDS
from lastcall.ports.node import Clock

RECENT_SECONDS = 2.0
"""So old may be the Services by which a pod is found to serve."""


class _LabelledNamespace(Facts, frozen=True):
    metadata: ObjectMetadata


_NAMESPACES, _SERVICES = NAMESPACES.with_shape(_LabelledNamespace), SERVICES.with_shape(PodService)


class KubePodSurroundings:
    """``ports.guard_cluster.PodSurroundings``. Needs get on namespaces, and list on services."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._recent = RecentReads(clock)

    async def read_settle_label(self, namespace: str) -> str | None:
        """``PodSurroundings.read_settle_label``."""
        try:
            found = await self._client.get(_NAMESPACES, namespace)
        except NotFound:
            return None
        return (found.metadata.labels or {}).get(SETTLE_SECONDS)

    async def read_services(self, namespace: str, *, fresh: bool) -> Sequence[PodService]:
        """``PodSurroundings.read_services``."""

        async def load() -> Sequence[PodService]:
            return (await self._client.list(_SERVICES, namespace=namespace)).items

        return await self._recent.read(namespace, load, seconds=0.0 if fresh else RECENT_SECONDS)
