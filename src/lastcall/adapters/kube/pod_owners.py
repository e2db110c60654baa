"""``ports.cluster.PodOwners`` at the API server."""

from collections.abc import Callable

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import REPLICA_SETS, REPLICATION_CONTROLLERS
from lastcall.errors import NotFound, Unavailable
from lastcall.model.base import Facts
from lastcall.model.pods import Int32, Int64, Pod


class ReplicaMeta(Facts, frozen=True):
    """The metadata of a controller of replicas."""

    generation: Int64 = 0


class ReplicaSpec(Facts, frozen=True):
    """How many replicas are wanted."""

    replicas: Int32 = 1


class ReplicaStatus(Facts, frozen=True):
    """How many active pods its controller has counted, and for which generation."""

    replicas: Int32 = 0
    observed_generation: Int64 = 0


class ReplicaOwner(Facts, frozen=True):
    """A ReplicaSet or ReplicationController, as far as it counts its pods."""

    metadata: ReplicaMeta = ReplicaMeta()
    spec: ReplicaSpec = ReplicaSpec()
    status: ReplicaStatus = ReplicaStatus()


_RESOURCES = {
    "ReplicaSet": REPLICA_SETS.with_shape(ReplicaOwner),
    "ReplicationController": REPLICATION_CONTROLLERS.with_shape(ReplicaOwner),
}


class KubePodOwners:
    """Needs the verb get on replicasets and replicationcontrollers. ``client`` as for ``KubeNodeObjects``."""

    def __init__(self, client: Callable[[], Client | None]) -> None:
        self._find_client = client

    async def has_all_replicas(self, pod: Pod) -> bool:
        """By status.replicas, which counts no ended pod (pkg/controller: FilterActivePods)."""
        client = self._find_client()
        if client is None:
            raise Unavailable("no identity for the API server is known")
        owner = next(one for one in pod.metadata.owner_references or () if one.controller)
        try:
            found = await client.get(_RESOURCES[owner.kind], owner.name, namespace=pod.metadata.namespace)
        except NotFound:
            return True
        seen = found.status.observed_generation >= found.metadata.generation
        return seen and found.status.replicas >= found.spec.replicas
