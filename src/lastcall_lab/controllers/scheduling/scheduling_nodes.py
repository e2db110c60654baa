"""The nodes with their pods, as one decision sees them (pure)."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from lastcall_lab.controllers.framework.view import Object, View, controller_of
from lastcall_lab.controllers.objects import pods
from lastcall_lab.controllers.scheduling import resource_requests

Port = tuple[str, str, int]
"""Address, protocol and number of a host port."""


@dataclass(frozen=True)
class SchedulingNode:
    """A node and its unfinished pods; ``asked`` are their requests by uid."""

    node: Object
    pods: Sequence[Object]
    asked: Mapping[str, tuple[int, resource_requests.Amounts]]

    @property
    def name(self) -> str:
        """The name of the node."""
        return str(self.node["metadata"]["name"])

    @cached_property
    def capacity(self) -> resource_requests.Amounts:
        """The allocatable resources."""
        return resource_requests.parse_amounts((self.node.get("status") or {}).get("allocatable"))

    @cached_property
    def used(self) -> resource_requests.Amounts:
        """The sum of its pods' requests."""
        return resource_requests.sum_amounts(amounts for _, amounts in self.asked.values())

    @cached_property
    def used_with_defaults(self) -> resource_requests.Amounts:
        """The sum with default requests for pods without requests."""
        return resource_requests.sum_amounts(
            resource_requests.with_default_requests(amounts) for _, amounts in self.asked.values()
        )

    @cached_property
    def pods_per_owner(self) -> Counter[str]:
        """The number of its pods per controller uid."""
        found = (controller_of(pod) for pod in self.pods)
        return Counter(owner["uid"] for owner in found if owner)

    @cached_property
    def used_ports(self) -> set[Port]:
        """The host ports of its pods."""
        return {port for pod in self.pods for port in host_ports(pod)}

    @cached_property
    def anti_affine_pods(self) -> Sequence[Object]:
        """Its pods with required anti-affinity."""
        return [pod for pod in self.pods if (pod["spec"].get("affinity") or {}).get("podAntiAffinity")]


@dataclass(frozen=True)
class NodeRejection:
    """Why a node does not fit. ``others``: fewer pods on it could help, so Kubernetes would consider preemption."""

    reasons: tuple[str, ...]
    others: bool = False


class NodeVerdict(NamedTuple):
    """The judgement of a node. ``unwelcome`` counts PreferNoSchedule taints; ``load`` is its utilization afterwards."""

    rejection: NodeRejection | None = None
    unwelcome: int = 0
    load: tuple[float, Fraction] = (0.0, Fraction(0))
    """Rounded for the first comparison, and exact."""


class SchedulingNodes:
    """Builds the ``SchedulingNode`` objects and keeps each until its node or its pods change."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        """``changed`` is called with the name of each node that was rebuilt or removed."""
        self._changed = changed
        self._marked = 0
        self._coming: dict[str, list[Object]] = {}
        self.rooms: dict[str, SchedulingNode] = {}
        """By name, the latest changes at the end."""

    def update_nodes(self, view: View, assumed: Sequence[tuple[Object, str]]) -> Sequence[SchedulingNode]:
        """Updates all nodes; ``assumed`` are pods whose binding is not visible yet."""
        coming: dict[str, list[Object]] = {}
        for pod, target in assumed:
            coming.setdefault(target, []).append(pod)
        before, self._coming = self._coming, coming
        concerned = {name for name in {*before, *coming} if before.get(name) != coming.get(name)}
        concerned.update(view.changed_nodes(self._marked))
        self._marked = view.node_change_count
        for name in sorted(concerned):
            self._renew_node(name, view, coming.get(name, []))
        return list(self.rooms.values())

    def _renew_node(self, name: str, view: View, arriving: Sequence[Object]) -> None:
        node, before = view.get("nodes", "", name), self.rooms.pop(name, None)
        if node is not None:
            present = [pod for pod in view.on_node(name) if pods.pod_phase(pod) not in pods.FINISHED]
            present += arriving
            self.rooms[name] = SchedulingNode(node, present, _requests_by_uid(present, before.asked if before else {}))
        self._changed(name)


def host_ports(pod: Object) -> Iterator[Port]:
    """The host ports that a pod needs."""
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("hostIP", ""), port.get("protocol", "TCP"), port["hostPort"]


def _requests_by_uid(
    present: Sequence[Object], before: Mapping[str, tuple[int, resource_requests.Amounts]]
) -> dict[str, tuple[int, resource_requests.Amounts]]:
    """Reuses known requests, which change only with the pod's generation."""
    result = {}
    for pod in present:
        uid, generation = pod["metadata"]["uid"], pod["metadata"].get("generation", 0)
        known = before.get(uid)
        result[uid] = known if known and known[0] == generation else (generation, resource_requests.pod_requests(pod))
    return result
