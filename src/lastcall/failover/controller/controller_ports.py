"""The ports of the failover controller, one narrow protocol each; adapters implement them.

Errors are those of ``lastcall.errors``: Unavailable, TimedOut and TooManyRequests may be retried; Conflict means that
the object is not as it was read; NotFound that it is gone.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Protocol

from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import (
    ClusterEvent,
    FailoverPod,
    LiveNode,
    ObjectChange,
    WatchedAttachment,
    WatchedLease,
    WatchedNode,
)
from lastcall.model.snapshot import DatedTaint


class FailoverApi(Protocol):
    """The API server, as far as the controller uses it."""

    @property
    def api_failed_at(self) -> float | None:
        """The last boottime at which so many requests failed that the server, or the way to it, counts as broken.

        None: never. Requests that only serve output, such as events, do not count.
        """
        ...

    @property
    def api_trouble(self) -> str:
        """How many requests failed then, and the last one, as the beginning of a sentence; empty: none."""
        ...

    @property
    def watch_trouble(self) -> str:
        """Why the state of a watched kind is outdated; empty if none is."""
        ...

    async def follow_objects(self, hear: Callable[[ObjectChange], None]) -> None:
        """Delivers all existing objects and every change; never ends. Failures are retried."""
        ...

    async def read_node(self, name: str) -> LiveNode:
        """Reads live. NotFound."""
        ...

    async def list_nodes(self) -> Sequence[WatchedNode]:
        """Lists all Nodes live, except for those that cannot be decoded."""
        ...

    async def read_node_lease(self, name: str) -> WatchedLease | None:
        """Reads the Lease that a node's kubelet renews, live; None without one."""
        ...

    async def read_watchdog_lease(self, name: str) -> WatchedLease | None:
        """Reads a node's watchdog Lease, live; None without one."""
        ...

    async def list_watchdog_leases(self) -> Sequence[WatchedLease]:
        """Lists all watchdog Leases live."""
        ...

    async def read_shutdown(self, name: str) -> NodeShutdown | None:
        """Reads a node's shutdown announcement, live; None without one, or without the permission to read it."""
        ...

    async def list_pods(self, node: str) -> Sequence[FailoverPod]:
        """Lists the pods bound to a node, live."""
        ...

    async def read_pod(self, namespace: str, name: str) -> FailoverPod | None:
        """Reads one pod live; None if it does not exist."""
        ...

    def list_pods_by_labels(
        self, namespace: str, labels: Mapping[str, str]
    ) -> AsyncGenerator[Sequence[FailoverPod], None]:
        """Lists the pods with all these labels in a namespace, live and page by page; pages are read on demand."""
        ...

    async def read_attachment(self, name: str) -> WatchedAttachment:
        """Reads a VolumeAttachment live; NotFound."""
        ...

    async def find_claim(self, volume: str) -> tuple[str, str] | None:
        """Namespace and name of the claim to which a PersistentVolume is bound; None if it is unbound or missing."""
        ...

    async def list_etcd_nodes(self) -> frozenset[str]:
        """The nodes that run a static pod of etcd."""
        ...

    async def update_node(
        self,
        node: LiveNode,
        *,
        mark: str | None = None,
        fenced: str | None = None,
        taints: Sequence[DatedTaint] | None = None,
        keep_word: bool = False,
    ) -> LiveNode:
        """Writes our mark (empty: removes it), the fencing history and the taints in one write; None keeps a field.

        A removed or written mark also removes a person's acknowledgement, unless ``keep_word``. Conflict if the Node
        changed since it was read, so that no other writer's change is lost.
        """
        ...

    async def add_pod_condition(self, pod: FailoverPod, condition: Mapping[str, Any]) -> None:
        """Adds a condition to a pod. Conflict if it is another pod, NotFound if it is gone."""
        ...

    async def fail_pod(self, pod: FailoverPod, condition: Mapping[str, Any] | None) -> FailoverPod:
        """Sets the phase to Failed and adds ``condition``, if given, in the same write; returns the resulting pod.

        RequestRefused (kube-apiserver's 422: a UID is immutable) or Conflict if it is another pod, NotFound if it is
        gone.
        """
        ...

    async def delete_pod(self, namespace: str, name: str, *, uid: str, grace: int | None) -> FailoverPod | None:
        """Deletes a pod; ``grace`` None: its own grace period. Returns the pod from the answer; None if it holds none.

        Conflict if it is another pod, NotFound if it is gone.
        """
        ...

    async def delete_attachment(self, name: str, *, uid: str, revision: str) -> None:
        """Deletes a VolumeAttachment. Conflict if it is another one or has changed since, NotFound if it is gone."""
        ...

    async def write_policy_status(self, name: str, status: Mapping[str, Any]) -> None:
        """Writes the status of a FencePolicy."""
        ...

    async def create_event(self, told: ClusterEvent) -> None:
        """Creates an event."""
        ...


class Leadership(Protocol):
    """The controller's leadership. ``adapters.kube.leader_election.LeaderElector`` implements it."""

    @property
    def leads(self) -> bool:
        """Whether this controller may act now."""
        ...

    @property
    def leading_until(self) -> float:
        """The boottime until which this controller may certainly act."""
        ...

    @property
    def sole_until(self) -> float:
        """The boottime until which no other controller leads, if this one leads now: its work must be over by then."""
        ...

    @property
    def last_renewal(self) -> float:
        """The boottime at which the last confirmed renewal was sent, if this controller leads."""
        ...

    @property
    def holder(self) -> str:
        """The current leader, as last read."""
        ...

    async def confirm_leading(self) -> bool:
        """Asks the API server whether this controller leads now; raises its error if that cannot be determined."""
        ...
