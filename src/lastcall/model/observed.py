"""Objects of a cluster as the failover controller reads them: only the fields that it needs of each kind.

The objects watched for all nodes (``WatchedNode``, ``WatchedLease``, ``WatchedAttachment``) are as small as possible;
the others (``LiveNode``, ``FailoverPod``) are read for a node in trouble. Times are text: they are compared only with
themselves, because the clocks of other machines prove nothing. Any time may be null, which Go writes for an unset one
(``metav1.Time.MarshalJSON``) even where the field should be omitted; here it is the empty text, as if missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from lastcall import names
from lastcall.model.base import Facts, Time
from lastcall.model.fence_node import FenceNode
from lastcall.model.snapshot import DatedTaint, PodVolume
from lastcall.model.tolerations import Toleration

MARK = names.FAILOVER_ANNOTATION
_READY = "Ready"


class ObservedCondition(Facts, frozen=True):
    """v1.NodeCondition or v1.PodCondition."""

    type: str = ""
    status: str = ""
    heartbeat: str | None = msgspec.field(name="lastHeartbeatTime", default=None)

    @property
    def last_heartbeat_time(self) -> str:
        """The time, or "" if there is none."""
        return self.heartbeat or ""


class NodeInfo(Facts, frozen=True):
    """v1.NodeSystemInfo."""

    boot_id: str = msgspec.field(name="bootID", default="")
    system_uuid: str = msgspec.field(name="systemUUID", default="")
    machine_id: str = msgspec.field(name="machineID", default="")


class ObservedNodeStatus(Facts, frozen=True):
    """v1.NodeStatus."""

    node_info: NodeInfo = NodeInfo()
    conditions: tuple[ObservedCondition, ...] = ()


class ObservedNodeSpec(Facts, frozen=True):
    """v1.NodeSpec."""

    taints: tuple[DatedTaint, ...] = ()
    provider_id: str = msgspec.field(name="providerID", default="")
    unschedulable: bool = False


class WatchedMeta(Facts, frozen=True):
    """v1.ObjectMeta of a watched node. Its annotations may hold parameters of its fencers."""

    name: str
    uid: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class ObservedNode(Facts, frozen=True):
    """v1.Node, as watched or as read live."""

    metadata: WatchedMeta
    spec: ObservedNodeSpec = ObservedNodeSpec()
    status: ObservedNodeStatus = ObservedNodeStatus()

    @property
    def ready_condition(self) -> ObservedCondition:
        """The condition Ready; an empty one if there is none."""
        return _ready_condition(self.status.conditions)

    @property
    def mark_text(self) -> str:
        """The text of our mark; empty if there is none."""
        return self.metadata.annotations.get(MARK, "")

    @property
    def acknowledgement_text(self) -> str:
        """A person's acknowledgement that the machine is dead; empty if there is none."""
        return self.metadata.annotations.get(names.ACKNOWLEDGED_DEAD, "")

    @property
    def fencing_history_text(self) -> str:
        """The record of its past fencing; empty if there is none."""
        return self.metadata.annotations.get(names.FENCED, "")

    @property
    def fence_node(self) -> FenceNode:
        """The facts by which fences are chosen, configured and verified, without our own annotations."""
        metadata, info = self.metadata, self.status.node_info
        annotations = {key: value for key, value in metadata.annotations.items() if key not in (MARK, names.FENCED)}
        return FenceNode(
            name=metadata.name,
            system_uuid=info.system_uuid,
            provider_id=self.spec.provider_id,
            serial=metadata.annotations.get(names.MACHINE_SERIAL, ""),
            boot_id=info.boot_id,
            machine_id=info.machine_id,
            labels=metadata.labels,
            annotations=annotations,
        )


class WatchedNode(ObservedNode, frozen=True):
    """v1.Node as watched."""


class ManagedFieldsEntry(Facts, frozen=True):
    """v1.ManagedFieldsEntry without the field set."""

    time: str | None = None


class NodeMeta(WatchedMeta, frozen=True):
    """v1.ObjectMeta of a node that was read live."""

    managed_fields: tuple[ManagedFieldsEntry, ...] = ()

    @property
    def last_written(self) -> str:
        """The time of the last write by the API server's clock; empty if unknown."""
        return max((one.time for one in self.managed_fields if one.time), default="")


class LiveNode(ObservedNode, frozen=True):
    """v1.Node as read live."""

    metadata: NodeMeta


class ObservedLeaseSpec(Facts, frozen=True):
    """v1.LeaseSpec."""

    renewed: str | None = msgspec.field(name="renewTime", default=None)
    holder_identity: str = ""
    lease_duration_seconds: int | None = None

    @property
    def renew_time(self) -> str:
        """The time, or "" if it was never renewed."""
        return self.renewed or ""


class ObservedLeaseMeta(Facts, frozen=True):
    """v1.ObjectMeta of a Lease."""

    name: str
    resource_version: str = ""
    annotations: Mapping[str, str] = {}


class WatchedLease(Facts, frozen=True):
    """A node's Lease."""

    metadata: ObservedLeaseMeta
    spec: ObservedLeaseSpec = ObservedLeaseSpec()


class PlaceSpec(Facts, frozen=True):
    """The node that a pod is bound to."""

    node_name: str = ""


class PodPlace(Facts, frozen=True):
    """A pod, with nothing but its node."""

    spec: PlaceSpec = PlaceSpec()


class WatchedShutdownSpec(Facts, frozen=True):
    """The boot that shuts down, and how."""

    boot_id: str = msgspec.field(name="bootID", default="")
    how: str = ""


class WatchedShutdownStatus(Facts, frozen=True):
    """The shutdown's outcome and deadline, on the node's own clock."""

    outcome: str = ""
    start_time: str | None = None
    deadline_time: str | None = None
    returned_time: str | None = None


class WatchedShutdown(Facts, frozen=True):
    """``NodeShutdown`` without the pods, which are read when needed; it has the name of its node."""

    metadata: ObservedLeaseMeta
    spec: WatchedShutdownSpec = WatchedShutdownSpec()
    status: WatchedShutdownStatus = WatchedShutdownStatus()


class ObservedAttachmentMeta(Facts, frozen=True):
    """v1.ObjectMeta of an attachment."""

    name: str
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()


class ObservedAttachmentSource(Facts, frozen=True):
    """v1.VolumeAttachmentSource."""

    persistent_volume_name: str = ""


class ObservedAttachmentSpec(Facts, frozen=True):
    """v1.VolumeAttachmentSpec."""

    node_name: str = ""
    attacher: str = ""
    source: ObservedAttachmentSource = ObservedAttachmentSource()


class WatchedAttachment(Facts, frozen=True):
    """storage.k8s.io/v1 VolumeAttachment."""

    metadata: ObservedAttachmentMeta
    spec: ObservedAttachmentSpec = ObservedAttachmentSpec()


class ObservedOwner(Facts, frozen=True):
    """v1.OwnerReference."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObservedPodMeta(Facts, frozen=True):
    """v1.ObjectMeta of a pod."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    created: str | None = msgspec.field(name="creationTimestamp", default=None)
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[ObservedOwner, ...] = ()

    @property
    def creation_timestamp(self) -> str:
        """The time, or "" if unknown."""
        return self.created or ""


class ObservedPodSpec(Facts, frozen=True):
    """v1.PodSpec."""

    node_name: str = ""
    termination_grace_period_seconds: int | None = None
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[PodVolume, ...] = ()


class ObservedPodStatus(Facts, frozen=True):
    """v1.PodStatus."""

    phase: str = "Pending"
    conditions: tuple[ObservedCondition, ...] = ()


class FailoverPod(Facts, frozen=True):
    """v1.Pod as read live."""

    metadata: ObservedPodMeta
    spec: ObservedPodSpec = ObservedPodSpec()
    status: ObservedPodStatus = ObservedPodStatus()

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name

    @property
    def is_terminating(self) -> bool:
        """Whether it is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        """Whether its condition Ready is True."""
        return _ready_condition(self.status.conditions).status == "True"

    @property
    def claim_keys(self) -> tuple[tuple[str, str], ...]:
        """The claims of its volumes by namespace and name; generic ephemeral volumes derive theirs from the pod."""
        claims = (volume.claim_name(self.metadata.name) for volume in self.spec.volumes)
        return tuple((self.metadata.namespace, claim) for claim in claims if claim)

    @property
    def controller_owner(self) -> ObservedOwner | None:
        """The owner reference of its controller, if any."""
        return next((one for one in self.metadata.owner_references if one.controller), None)


class WatchedKind(Enum):
    """The kinds of watched objects."""

    NODES = "nodes"
    LEASES = "leases"
    WATCHDOGS = "watchdogs"
    """The Leases in which agents state that they hold an armed watchdog."""
    SHUTDOWNS = "shutdowns"
    ATTACHMENTS = "attachments"
    POLICIES = "policies"


OPTIONAL = (WatchedKind.WATCHDOGS, WatchedKind.SHUTDOWNS)
"""The kinds that a cluster may lack: the controller does not wait for them, and is no less safe without them."""

WatchedObject = WatchedNode | WatchedLease | WatchedShutdown | WatchedAttachment | dict[str, Any]
"""A policy is a dict, because it may violate the rules."""


@dataclass(frozen=True)
class ObjectChange:
    """The current state of one object; None if it is gone. An empty ``name`` follows the last object of a full list."""

    what: WatchedKind
    name: str
    now: WatchedObject | None


@dataclass(frozen=True, kw_only=True)
class ClusterEvent:
    """An event (events.k8s.io) about a Node, or about a pod if ``namespace`` is set."""

    name: str
    uid: str
    reason: str
    message: str
    namespace: str = ""
    warning: bool = False
    count: int = 1
    """The number of occurrences."""
    lasts: float = 0.0
    """Seconds between the first occurrence and the last one."""
    age: float = 0.0
    """Seconds since the last occurrence."""


def _ready_condition(conditions: tuple[ObservedCondition, ...]) -> ObservedCondition:
    return next((one for one in conditions if one.type == _READY), ObservedCondition())
