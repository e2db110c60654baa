"""What the controller acts through, one narrow role each; adapters play them.

Errors are those of ``lastcall.errors``: Unavailable, TimedOut and NotNow may be tried again, Conflict means that the object
is not as it was read, NotFound that it is gone.
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
    """The API server, as far as it is asked."""

    @property
    def api_failed_at(self) -> float | None:
        """When requests last failed in such a number that the server, or the way to it, has; on the clock's boottime.

        None: never. Requests that are for people alone, such as events, do not count.
        """
        ...

    @property
    def api_trouble(self) -> str:
        """How many had failed then, and the last of them, as the beginning of a sentence; empty: none."""
        ...

    @property
    def watch_trouble(self) -> str:
        """Why something that is watched is not known as it is now; empty if all is."""
        ...

    async def follow_objects(self, hear: Callable[[ObjectChange], None]) -> None:
        """Tells everything that is there, and every change; never ends. What fails is tried again."""
        ...

    async def read_node(self, name: str) -> LiveNode:
        """Read live; NotFound."""
        ...

    async def list_nodes(self) -> Sequence[WatchedNode]:
        """All Nodes, read live, but those that cannot be decoded."""
        ...

    async def read_node_lease(self, name: str) -> WatchedLease | None:
        """The Lease that a node renews, read live; None if there is none."""
        ...

    async def read_watchdog_lease(self, name: str) -> WatchedLease | None:
        """The Lease by which a node's agent tells of its watchdog, read live; None if there is none."""
        ...

    async def list_watchdog_leases(self) -> Sequence[WatchedLease]:
        """All Leases by which agents tell of their watchdogs, read live."""
        ...

    async def read_shutdown(self, name: str) -> NodeShutdown | None:
        """A node's own word on its going down, read live; None if there is none, or the right to read it is missing."""
        ...

    async def list_pods(self, node: str) -> Sequence[FailoverPod]:
        """Those that are bound to a node, read live."""
        ...

    async def read_pod(self, namespace: str, name: str) -> FailoverPod | None:
        """One pod, read live; None if there is none."""
        ...

    def list_pods_by_labels(
        self, namespace: str, labels: Mapping[str, str]
    ) -> AsyncGenerator[Sequence[FailoverPod], None]:
        """Those of a namespace that have all these labels, read live, page by page: the next is read when it is wanted."""
        ...

    async def read_attachment(self, name: str) -> WatchedAttachment:
        """A VolumeAttachment, read live; NotFound."""
        ...

    async def find_claim(self, volume: str) -> tuple[str, str] | None:
        """Namespace and name of the claim to which a PersistentVolume is bound; None if there is none."""
        ...

    async def list_etcd_nodes(self) -> frozenset[str]:
        """The nodes on which a static pod of etcd runs."""
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
        """Our mark (empty: none any more), what it was fenced for, the taints, in one write; None leaves what is there.

        With the mark goes a person's word that the machine is dead, but for ``keep_word``. Conflict if the Node is not as it
        was read, so that nothing of others is lost.
        """
        ...

    async def add_pod_condition(self, pod: FailoverPod, condition: Mapping[str, Any]) -> None:
        """Adds a condition. Conflict if it is another pod, NotFound if it is gone."""
        ...

    async def fail_pod(self, pod: FailoverPod, condition: Mapping[str, Any] | None) -> FailoverPod:
        """Its phase becomes Failed, and ``condition``, if given, is added in the same write; the pod as it is then.

        Refused (kube-apiserver's 422: a UID is immutable) or Conflict if it is another pod, NotFound if it is gone.
        """
        ...

    async def delete_pod(self, namespace: str, name: str, *, uid: str, grace: int | None) -> FailoverPod | None:
        """Deletes; ``grace`` None: its own. The pod as the answer shows it; None if it does not.

        Conflict if it is another pod, NotFound if it is gone.
        """
        ...

    async def delete_attachment(self, name: str, *, uid: str, revision: str) -> None:
        """Conflict if it is another one, or not as it was read, NotFound if it is gone."""
        ...

    async def write_policy_status(self, name: str, status: Mapping[str, Any]) -> None:
        """Writes the status of a FencePolicy."""
        ...

    async def create_event(self, told: ClusterEvent) -> None:
        """A new event."""
        ...


class Leadership(Protocol):
    """Who may act. ``adapters.kube.election.Election`` is one."""

    @property
    def leads(self) -> bool:
        """Whether we may act now."""
        ...

    @property
    def leading_until(self) -> float:
        """Boottime until which we may act for certain."""
        ...

    @property
    def sole_until(self) -> float:
        """Boottime until which nobody else leads, if we lead now: what has begun is over by then."""
        ...

    @property
    def last_renewal(self) -> float:
        """Boottime at which the renewal was asked for that was answered last, if we lead."""
        ...

    @property
    def holder(self) -> str:
        """Who leads, as it was read last."""
        ...

    async def confirm_leading(self) -> bool:
        """Whether we lead, as the API server says now; its error if that cannot be known."""
        ...
