"""The objects that decide about a drain: pods with what they ask of a node, Nodes, and what holds pods (pure)."""

from typing import Annotated

import msgspec

from lastcall.model.base import Facts
from lastcall.model.pods import Container, ObjectMetadata, Pod, PodSpec, StatusCondition
from lastcall.model.snapshot import DatedTaint
from lastcall.model.tolerations import Toleration

Quantity = Annotated[str | int | float, msgspec.Meta(description="resource.Quantity")]

PodName = tuple[str, str]
"""Namespace and name."""

OUT_OF_REACH = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
"""Taints of a node whose kubelet is not heard of, or says that it is not ready."""


class ResourceRequirements(Facts, frozen=True):
    """v1.ResourceRequirements."""

    requests: dict[str, Quantity] | None = None


class DrainContainer(Container, frozen=True):
    """v1.Container, with the resources that it asks for."""

    resources: ResourceRequirements | None = None


class NodeSelectorRequirement(Facts, frozen=True):
    """v1.NodeSelectorRequirement."""

    key: str
    operator: str
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Facts, frozen=True):
    """v1.NodeSelectorTerm: all requirements must be met; one without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(Facts, frozen=True):
    """v1.NodeSelector: one of the terms must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class NodeAffinity(Facts, frozen=True):
    """v1.NodeAffinity."""

    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class Affinity(Facts, frozen=True):
    """v1.Affinity."""

    node_affinity: NodeAffinity | None = None


class PodResourceClaim(Facts, frozen=True):
    """v1.PodResourceClaim: a device that the pod uses (dynamic resource allocation)."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodReadinessGate(Facts, frozen=True):
    """v1.PodReadinessGate: a condition without which the pod is not Ready."""

    condition_type: str


class DrainPodSpec(PodSpec, frozen=True):
    """v1.PodSpec, with what the pod asks of a node."""

    containers: tuple[DrainContainer, ...] = ()
    init_containers: tuple[DrainContainer, ...] | None = None
    tolerations: tuple[Toleration, ...] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    overhead: dict[str, Quantity] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    readiness_gates: tuple[PodReadinessGate, ...] | None = None


class DrainPod(Pod, frozen=True):
    """v1.Pod, with what the pod asks of a node."""

    spec: DrainPodSpec = DrainPodSpec()


class DrainNodeSpec(Facts, frozen=True):
    """v1.NodeSpec."""

    taints: tuple[DatedTaint, ...] | None = None
    unschedulable: bool = False


class NodeAddress(Facts, frozen=True):
    """v1.NodeAddress."""

    type: str = ""
    address: str = ""


class DrainNodeStatus(Facts, frozen=True):
    """v1.NodeStatus."""

    addresses: tuple[NodeAddress, ...] | None = None
    conditions: tuple[StatusCondition, ...] | None = None
    allocatable: dict[str, Quantity] | None = None


class DrainNode(Facts, frozen=True):
    """v1.Node."""

    metadata: ObjectMetadata
    spec: DrainNodeSpec = DrainNodeSpec()
    status: DrainNodeStatus = DrainNodeStatus()

    @property
    def name(self) -> str:
        """The node's name."""
        return self.metadata.name

    def find_taint(self, *keys: str) -> DatedTaint | None:
        """The first taint with one of these keys."""
        return next((taint for taint in self.spec.taints or () if taint.key in keys), None)

    @property
    def internal_address(self) -> str:
        """The node's first internal address; "" if it has none."""
        return next((one.address for one in self.status.addresses or () if one.type == "InternalIP"), "")

    @property
    def readiness(self) -> str:
        """The status of the condition Ready; "" if the node has none."""
        found = (one.status for one in self.status.conditions or () if one.type == "Ready")
        return next(found, "")


def pod_name(pod: Pod) -> PodName:
    """Namespace and name of a pod."""
    return pod.metadata.namespace, pod.metadata.name
