"""What surrounds the pods of a drain: volumes, webhooks, leases, and what other tools write (pure)."""

from collections.abc import Mapping
from typing import Any

import msgspec

from lastcall.model.base import Facts, Time
from lastcall.model.budgets import Budget
from lastcall.model.drain_facts import DrainNode, DrainPod, NodeSelector, PodName
from lastcall.model.guard_facts import GuardedNamespace
from lastcall.model.guard_policy import GuardPolicy
from lastcall.model.node_pods import DnsService
from lastcall.model.pods import ObjectMetadata
from lastcall.model.surge_facts import Autoscaler, SurgeableWorkload
from lastcall.model.traffic import SliceEndpoint

MEDIK8S_LEASES = "medik8s-leases"
"""The namespace of the Leases of node-maintenance-operator and its sisters; each is named ``node-NODE``."""

OwnerPlace = tuple[str, str, str]
"""Kind, namespace and name of a controller."""


class DrainDaemonSet(Facts, frozen=True):
    """apps/v1 DaemonSet, of which only the metadata is read."""

    metadata: ObjectMetadata


class CsiVolumeSource(Facts, frozen=True):
    """v1.CSIPersistentVolumeSource."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Facts, frozen=True):
    """v1.VolumeNodeAffinity."""

    required: NodeSelector | None = None


class PresentField(Facts, frozen=True):
    """A field of which the presence matters."""


class DrainVolumeSpec(Facts, frozen=True):
    """v1.PersistentVolumeSpec."""

    csi: CsiVolumeSource | None = None
    local: PresentField | None = None
    host_path: PresentField | None = None
    node_affinity: VolumeNodeAffinity | None = None


class DrainVolume(Facts, frozen=True):
    """v1.PersistentVolume."""

    metadata: ObjectMetadata
    spec: DrainVolumeSpec = DrainVolumeSpec()


class DrainClaimSpec(Facts, frozen=True):
    """v1.PersistentVolumeClaimSpec."""

    volume_name: str = ""


class DrainClaim(Facts, frozen=True):
    """v1.PersistentVolumeClaim."""

    metadata: ObjectMetadata
    spec: DrainClaimSpec = DrainClaimSpec()


class AttachLimit(Facts, frozen=True):
    """storage/v1 VolumeNodeResources: so many volumes of a driver fit a node; None for any number."""

    count: int | None = None


class CsiNodeDriver(Facts, frozen=True):
    """storage/v1 CSINodeDriver."""

    name: str
    allocatable: AttachLimit | None = None


class CsiNodeSpec(Facts, frozen=True):
    """storage/v1 CSINodeSpec."""

    drivers: tuple[CsiNodeDriver, ...] | None = None


class CsiNode(Facts, frozen=True):
    """storage/v1 CSINode: the CSI drivers of the node of its name."""

    metadata: ObjectMetadata
    spec: CsiNodeSpec = CsiNodeSpec()


class WebhookService(Facts, frozen=True):
    """admissionregistration/v1 ServiceReference."""

    namespace: str
    name: str


class WebhookClient(Facts, frozen=True):
    """admissionregistration/v1 WebhookClientConfig; without a Service the webhook has a URL."""

    service: WebhookService | None = None


class WebhookRule(Facts, frozen=True):
    """admissionregistration/v1 RuleWithOperations."""

    operations: tuple[str, ...] | None = None
    api_groups: tuple[str, ...] | None = None
    api_versions: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    scope: str = "*"


class ReviewWebhook(Facts, frozen=True):
    """admissionregistration/v1 ValidatingWebhook."""

    name: str
    client_config: WebhookClient = WebhookClient()
    rules: tuple[WebhookRule, ...] | None = None
    failure_policy: str = "Fail"
    namespace_selector: dict[str, Any] | None = None
    object_selector: dict[str, Any] | None = None
    match_conditions: tuple[PresentField, ...] | None = None


class ValidatingConfiguration(Facts, frozen=True):
    """admissionregistration/v1 ValidatingWebhookConfiguration."""

    metadata: ObjectMetadata
    webhooks: tuple[ReviewWebhook, ...] | None = None


class ServiceSlice(Facts, frozen=True):
    """discovery/v1 EndpointSlice, whose label names its Service."""

    metadata: ObjectMetadata
    endpoints: tuple[SliceEndpoint, ...] | None = None

    @property
    def service(self) -> PodName:
        """Namespace and name of its Service."""
        return self.metadata.namespace, (self.metadata.labels or {}).get("kubernetes.io/service-name", "")


class OwnerLeaseSpec(Facts, frozen=True):
    """coordination/v1 LeaseSpec."""

    holder_identity: str | None = None
    renew_time: Time | None = None
    lease_duration_seconds: int | None = None


class OwnerLease(Facts, frozen=True):
    """coordination/v1 Lease by which a tool claims a node."""

    metadata: ObjectMetadata
    spec: OwnerLeaseSpec = OwnerLeaseSpec()


class NodeMaintenanceSpec(Facts, frozen=True):
    """The spec of a NodeMaintenance."""

    node_name: str = ""
    reason: str = ""


class NodeMaintenance(Facts, frozen=True):
    """nodemaintenance.medik8s.io NodeMaintenance: the node-maintenance-operator drains the node."""

    metadata: ObjectMetadata
    spec: NodeMaintenanceSpec = NodeMaintenanceSpec()


class MachineNode(Facts, frozen=True):
    """v1.ObjectReference to a Node."""

    name: str = ""


class MachineStatus(Facts, frozen=True):
    """The status of a Machine."""

    node_ref: MachineNode | None = None


class Machine(Facts, frozen=True):
    """cluster.x-k8s.io Machine: the machine behind a Node."""

    metadata: ObjectMetadata
    status: MachineStatus = MachineStatus()


class DeviceTaint(Facts, frozen=True):
    """resource.k8s.io DeviceTaint."""

    key: str = ""
    effect: str = ""


class DeviceTaintRuleSpec(Facts, frozen=True):
    """resource.k8s.io DeviceTaintRuleSpec."""

    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Facts, frozen=True):
    """resource.k8s.io DeviceTaintRule: devices that pods may not use, or have to leave."""

    metadata: ObjectMetadata
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class DrainFacts(Facts, frozen=True):
    """The objects of a cluster that matter to a drain."""

    nodes: tuple[DrainNode, ...] = ()
    pods: tuple[DrainPod, ...] = ()
    daemon_sets: tuple[DrainDaemonSet, ...] | None = None
    """None: they are not known, and count as existing."""
    dns: tuple[DnsService, ...] = ()
    """The Services of the cluster's DNS."""
    budgets: tuple[Budget, ...] = ()
    policies: tuple[GuardPolicy, ...] = ()
    namespaces: Mapping[str, GuardedNamespace] = msgspec.field(default_factory=dict)
    workloads: Mapping[OwnerPlace, SurgeableWorkload] = msgspec.field(default_factory=dict)
    autoscalers: tuple[Autoscaler, ...] = ()
    volumes: Mapping[str, DrainVolume] = msgspec.field(default_factory=dict)
    claims: Mapping[PodName, DrainClaim] = msgspec.field(default_factory=dict)
    csi_nodes: Mapping[str, CsiNode] = msgspec.field(default_factory=dict)
    webhooks: tuple[ValidatingConfiguration, ...] = ()
    slices: tuple[ServiceSlice, ...] | None = None
    """None: they are not known."""
    leases: tuple[OwnerLease, ...] = ()
    maintenances: tuple[NodeMaintenance, ...] = ()
    machines: tuple[Machine, ...] = ()
    device_taints: tuple[DeviceTaintRule, ...] = ()
