"""Selects a pod's node: the filters of Kubernetes' default profile in order, then the best node (pure)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from lastcall.model.tolerations import (
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
    first_untolerated,
    tolerates,
)
from lastcall_lab.controllers.framework.view import Object, View, controller_of
from lastcall_lab.controllers.objects import node_affinity, taints
from lastcall_lab.controllers.scheduling import pod_affinity, pod_volumes, resource_requests
from lastcall_lab.controllers.scheduling.scheduling_nodes import (
    NodeRejection,
    NodeVerdict,
    Port,
    SchedulingNode,
    host_ports,
)

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
_ANYWHERE = ("", "0.0.0.0", "::")
_NOT_NAMED = NodeVerdict(NodeRejection(("node(s) didn't satisfy plugin(s) [NodeAffinity]",)))


@dataclass(frozen=True)
class PodCandidate:
    """A pod to be scheduled, and the existing nodes."""

    pod: Object
    rooms: Sequence[SchedulingNode]
    view: View
    volumes: pod_volumes.PodVolumes

    @cached_property
    def _tolerations(self) -> Sequence[Toleration]:
        return taints.tolerations_of(self.pod)

    @cached_property
    def _pod_requests(self) -> resource_requests.Amounts:
        return resource_requests.pod_requests(self.pod)

    @cached_property
    def _pod_affinities(self) -> pod_affinity.PodAffinities:
        return pod_affinity.pod_affinities(self.pod, self.rooms, self.view)

    @cached_property
    def _topology_spreads(self) -> Sequence[pod_affinity.TopologySpread]:
        return pod_affinity.topology_spreads(self.pod, self.rooms)

    @cached_property
    def _only_names(self) -> set[str] | None:
        return node_affinity.affinity_node_names(self.pod)

    @cached_property
    def likeness(self) -> bytes:
        """Equal for pods that every node judges alike; empty if more than the node decides."""
        spec = self.pod["spec"]
        volumes = self.volumes.bound or self.volumes.unbound or self.volumes.blocked
        if volumes or spec.get("affinity") or self._topology_spreads or self._pod_affinities.closed:
            return b""
        known = [spec.get("tolerations"), spec.get("nodeSelector"), list(host_ports(self.pod)), self._pod_requests]
        return msgspec.json.encode(known)

    def judge_node(self, room: SchedulingNode) -> NodeVerdict:
        """Judges a node: the first filter that rejects it, otherwise its rank."""
        if self._only_names is not None and room.name not in self._only_names:
            return _NOT_NAMED
        if rejection := next((no for no in self._filter_results(room) if no), None):
            return NodeVerdict(rejection)
        advice = [taint for taint in taints.taints_of(room.node) if taint.effect == PREFER_NO_SCHEDULE]
        unwelcome = sum(not any(tolerates(one, taint) for one in self._tolerations) for taint in advice)
        load = resource_requests.load_share(
            resource_requests.sum_amounts(
                [room.used_with_defaults, resource_requests.with_default_requests(self._pod_requests)]
            ),
            room.capacity,
        )
        return NodeVerdict(None, unwelcome, (float(load), load))

    def count_kin(self, room: SchedulingNode) -> int:
        """The number of pods on a node with the same owner."""
        return room.pods_per_owner[self._owner_uid] if self._owner_uid else 0

    def _filter_results(self, room: SchedulingNode) -> Iterator[NodeRejection | None]:
        node = room.node
        cordoned = (node.get("spec") or {}).get("unschedulable")
        if cordoned and not any(tolerates(one, _CORDON) for one in self._tolerations):
            yield NodeRejection(("node(s) were unschedulable",))
        if first_untolerated(taints.taints_of(node), self._tolerations):
            yield NodeRejection(("node(s) had untolerated taint(s)",))
        if not node_affinity.fits_node_affinity(self.pod, node):
            yield NodeRejection(("node(s) didn't match Pod's node affinity/selector",))
        if any(_ports_clash(own, other) for own in host_ports(self.pod) for other in room.used_ports):
            yield NodeRejection(("node(s) didn't have free ports for the requested pod ports",), others=True)
        yield self._check_resources(room)
        yield self.volumes.reject(room, self.view)
        yield next((no for one in self._topology_spreads if (no := one.reject(room))), None)
        yield self._pod_affinities.reject(room)

    def _check_resources(self, room: SchedulingNode) -> NodeRejection | None:
        short = [] if len(room.pods) < room.capacity.get("pods", 0) else ["Too many pods"]
        never = False
        for name, amount in self._pod_requests.items():
            has = room.capacity.get(name, 0)
            if amount and amount > has - room.used.get(name, 0):
                short.append(f"Insufficient {name}")
                never = never or amount > has
        return NodeRejection(tuple(short), others=not never) if short else None

    @cached_property
    def _owner_uid(self) -> str:
        owner = controller_of(self.pod)
        return owner["uid"] if owner else ""


def _ports_clash(one: Port, other: Port) -> bool:
    same_place = one[0] == other[0] or one[0] in _ANYWHERE or other[0] in _ANYWHERE
    return same_place and one[1:] == other[1:]
