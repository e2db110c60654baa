"""Ports of a drain; ``adapters.kube.drain_cluster`` and its neighbours implement them. Errors are those of the API client."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from lastcall.errors import TooManyRequests
from lastcall.model.base import Facts
from lastcall.model.budgets import Budget
from lastcall.model.drain_facts import DrainNode, DrainPod


class NodeOwner(Facts, frozen=True):
    """Who has a node to himself, by whose Lease, why and since when."""

    node: str
    lease: str
    """``namespace/name``."""
    holder: str
    reason: str = ""
    since: str = ""


class OwnershipTaken(Facts, frozen=True):
    """The Leases of the nodes. ``warnings`` say where ownership is not recorded.

    ``spent`` are the seconds for which a run that has died held a node before: from its first to its last renewal.
    """

    spent: Mapping[str, float] = {}
    warnings: Sequence[str] = ()


class NodeOwnership(Protocol):
    """Leases that say who has a node to himself: one for each node.

    Whoever dies loses them when they expire. No clocks are compared: a Lease has expired when it has not changed for
    its duration while it was looked at.
    """

    async def take(self, nodes: Iterable[str]) -> OwnershipTaken | NodeOwner:
        """Takes the Leases of all nodes in the order of their names, or none: then the first owner who is alive.

        Waits for a Lease to expire if its holder does not renew it. Cancelled, it holds none.
        """
        ...

    @property
    def is_sure(self) -> bool:
        """Whether nobody else can have taken the Leases: the last renewals are young enough."""
        ...

    async def keep(self) -> NodeOwner:
        """Renews what was taken until somebody else has it, whom it returns. Failures are logged and tried again.

        ApiNotPermitted if the right to it was taken away, and the Leases may have expired meanwhile.
        """
        ...

    async def release(self, nodes: Iterable[str] | None = None) -> None:
        """Releases these nodes, or all; failures are logged, and the Leases expire."""
        ...


class DrainCluster(Protocol):
    """What a drain reads and writes live."""

    async def read_node(self, name: str) -> DrainNode:
        """The Node as it is now."""
        ...

    async def patch_node(self, name: str, patch: Mapping[str, Any]) -> DrainNode:
        """A merge patch; Conflict if its resourceVersion is not the current one."""
        ...

    async def patch_node_status(self, name: str, patch: Mapping[str, Any]) -> None:
        """A strategic merge patch of the status."""
        ...

    async def delete_pod(self, namespace: str, name: str, *, uid: str, grace: int | None) -> None:
        """Deletes exactly this pod; Conflict if it was replaced."""
        ...

    async def write_event(self, about: "DrainEvent") -> None:
        """Creates an Event; a failure is logged, since nothing depends on it."""
        ...


class EvictionHeld(TooManyRequests):
    """The application of the pod is not ready to lose it, as one of its responders says."""


class PodEvictions(Protocol):
    """How a drain asks for evictions."""

    async def evict_pod(self, namespace: str, name: str, *, uid: str, grace: int | None) -> None:
        """Asks for the eviction of exactly this pod; TooManyRequests while it may not go yet. It may be repeated."""
        ...

    async def withdraw_eviction(self, namespace: str, name: str, *, uid: str) -> None:
        """Takes back what ``evict_pod`` has left behind for a pod that stays; a failure is logged."""
        ...


class DrainEvent(Facts, frozen=True):
    """An Event about a Node, or about a pod if ``namespace`` is set."""

    name: str
    uid: str
    reason: str
    message: str
    namespace: str = ""
    is_warning: bool = False


class DrainWatch(Protocol):
    """The nodes of a drain and the pods on them, as last heard of; one stream of changes for each node, none for a pod."""

    @property
    def is_complete(self) -> bool:
        """Whether all nodes and their pods were listed."""
        ...

    @property
    def nodes_failure(self) -> str:
        """Why what is known of the nodes may be out of date; "" while it is current."""
        ...

    @property
    def pods(self) -> Iterable[DrainPod]:
        """The pods on the nodes."""
        ...

    @property
    def nodes(self) -> Mapping[str, DrainNode]:
        """The nodes that exist, by name."""
        ...

    async def wait_for_change(self, seen: int) -> int:
        """Waits until the number of changes is another than ``seen``, and returns it."""
        ...

    async def run(self) -> None:
        """Follows the objects without end; ApiNotPermitted if the right to it is missing for half a minute."""
        ...


class BudgetWatch(Protocol):
    """The PodDisruptionBudgets of the cluster, as last heard of."""

    @property
    def is_current(self) -> bool:
        """Whether they were listed, and the watch has not failed since."""
        ...

    @property
    def budgets(self) -> Mapping[str, Sequence[Budget]]:
        """The budgets by namespace."""
        ...

    async def wait_for_change(self, seen: int) -> int:
        """Waits until the number of changes is another than ``seen``, and returns it."""
        ...

    async def run(self) -> None:
        """Follows them without end, or until it is not permitted."""
        ...
