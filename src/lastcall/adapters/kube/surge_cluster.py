"""``ports.surges.SurgeCluster`` at the API server."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import (
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    ApiResource,
    WrittenObject,
    dict_resource,
)
from lastcall.errors import NotFound
from lastcall.model.surge_facts import Autoscaler, SurgeableWorkload

_WORKLOADS: Final[Mapping[str, ApiResource[Any]]] = {
    "Deployment": DEPLOYMENTS,
    "ReplicaSet": REPLICA_SETS,
    "ReplicationController": REPLICATION_CONTROLLERS,
}
_AUTOSCALERS = dict_resource("autoscaling", "v2", "horizontalpodautoscalers")


class KubeSurgeCluster:
    """Reads and patches with the rights of whoever drains."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read_workload(self, kind: str, namespace: str, name: str) -> SurgeableWorkload:
        """``SurgeCluster.read_workload``."""
        return await self._client.get(_WORKLOADS[kind].with_shape(SurgeableWorkload), name, namespace=namespace)

    async def list_autoscalers(self, namespace: str) -> Sequence[Autoscaler]:
        """``SurgeCluster.list_autoscalers``."""
        try:
            return (await self._client.list(_AUTOSCALERS.with_shape(Autoscaler), namespace=namespace)).items
        except NotFound:
            return ()

    async def patch_subject(self, subject: SurgeableWorkload | Autoscaler, patch: Mapping[str, Any]) -> None:
        """``SurgeCluster.patch_subject``."""
        resource = _AUTOSCALERS if isinstance(subject, Autoscaler) else _WORKLOADS[subject.kind]
        place = subject.metadata
        await self._client.patch(resource.with_shape(WrittenObject), place.name, patch, namespace=place.namespace)
