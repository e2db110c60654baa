"""Ports through which an agent reaches the objects of its own node at the API server."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from lastcall.model.pods import Pod
from lastcall.model.shutdown_node import ShutdownNode


class NodeObjects(Protocol):
    """This node's Node, its Lease in kube-node-lease, and the pods that are bound to it.

    Every method is one request, and raises what ``lastcall.errors`` has for its failure; Unavailable also if no answer
    comes in time. Writes to a pod raise Conflict or NotFound if the pod of this uid no longer exists.
    """

    def is_connected(self) -> bool:
        """Whether there is an identity to send requests with; otherwise they raise Unavailable."""
        ...

    async def get_node(self) -> ShutdownNode:
        """The Node."""
        ...

    async def patch_node(self, patch: Mapping[str, Any]) -> None:
        """Merges the patch into the Node. Conflict if its resourceVersion is not the current one."""
        ...

    async def patch_node_status(self, patch: Mapping[str, Any]) -> ShutdownNode:
        """Applies a strategic merge patch to the Node's status, and returns the Node.

        Conflict if the patch's resourceVersion is not the current one.
        """
        ...

    async def is_attached(self, driver: str, handle: str) -> bool:
        """Whether a VolumeAttachment of this CSI volume to this node exists."""
        ...

    async def patch_lease(self, patch: Mapping[str, Any]) -> None:
        """Merges the patch into the Lease."""
        ...

    async def patch_pod_status(self, pod: Pod, patch: Mapping[str, Any]) -> None:
        """Applies a strategic merge patch to the pod's status."""
        ...

    async def delete_pod(self, pod: Pod, grace: int) -> None:
        """Deletes the pod with this gracePeriodSeconds; 0 removes the object at once."""
        ...

    async def list_pods(self) -> Sequence[Pod]:
        """The pods that are bound to the node."""
        ...

    async def create_event(self, key: str, reason: str, message: str) -> None:
        """Creates an Event of the Node, unless there is one of the same ``key``."""
        ...


class PodOwners(Protocol):
    """The controllers of pods."""

    async def has_all_replicas(self, pod: Pod) -> bool:
        """Whether the pod's ReplicaSet or ReplicationController has as many pods that have not ended as it wants.

        True also if it no longer exists. Raises what ``lastcall.errors`` has for a failure.
        """
        ...


class ProxyLatency(Protocol):
    """How fast the proxy of this node follows the EndpointSlices."""

    async def read_latency(self) -> float | None:
        """The seconds in which it followed 99 % of the changes since it started; None if it has observed none.

        Raises Unavailable if the proxy does not answer, or answers something else.
        """
        ...


class PodEndpoints(Protocol):
    """The EndpointSlices that name this node's pods, read only while the node shuts down."""

    def start(self, namespaces: Iterable[str]) -> None:
        """Begins to list and watch the slices of these namespaces, and of those of later calls."""
        ...

    def receives_traffic(self, pod: Pod) -> bool | None:
        """Whether a slice names the pod as ready and not terminating; None while its namespace is not listed yet."""
        ...

    def next_change(self) -> "asyncio.Future[None]":
        """A future that is done when an answer of ``receives_traffic`` may have changed since this call."""
        ...

    async def stop(self) -> None:
        """Ends the watches."""
        ...
