"""Port for EvictionRequests and Evictions; ``adapters.kube.eviction_requests`` implements it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from lastcall.model.eviction_requests import (
    EvictablePod,
    EvictionIntent,
    EvictionRequest,
    EvictionRequestSpec,
    EvictionRequestStatus,
    EvictionStatus,
    PodEviction,
    ResponderProgress,
)
from lastcall.model.pods import OwnerReference


class EvictionObjects(Protocol):
    """The Evictions and EvictionRequests of the cluster, as last heard of."""

    @property
    def evictions(self) -> Sequence[PodEviction]:
        """All Evictions, by namespace and name."""
        ...

    @property
    def requests(self) -> Sequence[EvictionRequest]:
        """All EvictionRequests, by namespace and name; none if they are not followed."""
        ...

    @property
    def changes(self) -> int:
        """How many changes were heard of; -1 as long as not all objects were listed."""
        ...

    async def wait_for_change(self, seen: int) -> int:
        """Waits until the number of changes is another than ``seen``, and returns it."""
        ...

    async def run(self) -> None:
        """Follows the objects without end."""
        ...


class EvictionCluster(Protocol):
    """What is read and written live. Errors are those of the API client.

    Every write is a compare-and-set on the resourceVersion of the object that is given: Conflict if it has changed.
    """

    async def is_served(self) -> bool:
        """Whether the API server has these kinds."""
        ...

    async def find_pod(self, namespace: str, name: str) -> EvictablePod | None:
        """The pod of that name as it is now; None if there is none."""
        ...

    async def find_eviction(self, namespace: str, name: str) -> PodEviction | None:
        """The Eviction of that name as it is now; None if there is none."""
        ...

    async def list_requests(self, namespace: str) -> Sequence[EvictionRequest]:
        """The EvictionRequests of a namespace as they are now."""
        ...

    async def create_eviction(self, request: EvictionRequest, name: str) -> None:
        """Creates an Eviction for the target of a request, which owns it. AlreadyExists if the name is taken."""
        ...

    async def write_status(self, eviction: PodEviction, status: EvictionStatus) -> None:
        """Writes what the controller says. Of ``responders`` that is the name and the time of the start alone."""
        ...

    async def write_progress(self, eviction: PodEviction, progress: ResponderProgress) -> None:
        """Writes what one responder says of itself."""
        ...

    async def write_metadata(
        self, eviction: PodEviction, labels: Mapping[str, str | None], owners: Sequence[OwnerReference]
    ) -> None:
        """Sets these labels, removes those that are None, and adds the owners."""
        ...

    async def write_request_status(self, request: EvictionRequest, status: EvictionRequestStatus) -> None:
        """Writes what has become of a request."""
        ...

    async def evict(self, pod: EvictablePod) -> None:
        """Asks the Eviction API to evict exactly this pod. TooManyRequests while a budget or a webhook refuses."""
        ...


class EvictionRequests(Protocol):
    """What a requester writes of its own. Errors are those of the API client."""

    async def create_request(self, namespace: str, name: str, spec: EvictionRequestSpec) -> None:
        """Creates a request, which goes with the pod. AlreadyExists if the name is taken."""
        ...

    async def find_request(self, namespace: str, name: str) -> EvictionRequest | None:
        """The request of that name as it is now; None if there is none."""
        ...

    async def set_intent(self, request: EvictionRequest, intent: EvictionIntent) -> None:
        """Changes what is wanted. Conflict if the request has changed."""
        ...

    async def delete_request(self, request: EvictionRequest) -> None:
        """Deletes it. Without effect if it is gone."""
        ...
