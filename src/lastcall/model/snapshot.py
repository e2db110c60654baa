"""The state of a cluster that determines what happens to the pods and volumes of a lost node.

Each kind has only the fields that are read: ``k8s.io/api/core/v1``, ``storage/v1`` and ``coordination/v1``.
"""

from typing import Annotated

import msgspec

from lastcall import names
from lastcall.model.base import Facts, Time
from lastcall.model.tolerations import Taint, Toleration

Text = Annotated[str, msgspec.Meta(min_length=1)]

NODE_LEASES = "kube-node-lease"
"""The namespace of the Leases that nodes renew; each has the name of its node."""


class ObjectMeta(Facts, frozen=True):
    """v1.ObjectMeta."""

    name: Text
    namespace: str = "default"
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None


class PodAnnotations(Facts, frozen=True):
    """The one annotation of a pod that is read."""

    failover: str | None = msgspec.field(name=names.FAILOVER_ANNOTATION, default=None)


class SnapshotPodMeta(ObjectMeta, frozen=True):
    """v1.ObjectMeta of a pod."""

    annotations: PodAnnotations = PodAnnotations()


class DatedTaint(Taint, frozen=True):
    """v1.Taint with the time at which it was added, if recorded."""

    time_added: Time | None = None


class NodeCondition(Facts, frozen=True):
    """v1.NodeCondition."""

    type: str
    status: str
    last_heartbeat_time: Time | None = None


class AttachedVolume(Facts, frozen=True):
    """v1.AttachedVolume: a volume attached to a node, by its unique name."""

    name: str


class NodeSpec(Facts, frozen=True):
    """v1.NodeSpec."""

    taints: tuple[DatedTaint, ...] = ()


class NodeStatus(Facts, frozen=True):
    """v1.NodeStatus."""

    conditions: tuple[NodeCondition, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()


class Node(Facts, frozen=True):
    """v1.Node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready_condition(self) -> NodeCondition | None:
        """The condition Ready; None if there is none."""
        return next((one for one in self.status.conditions if one.type == "Ready"), None)

    @property
    def is_ready(self) -> bool:
        """Whether the condition Ready is True; a node without it is not ready (``nodeutil.IsNodeReady``)."""
        condition = self.ready_condition
        return condition is not None and condition.status == "True"

    @property
    def out_of_service(self) -> tuple[DatedTaint, ...]:
        """The out-of-service taints, of any value and effect."""
        return tuple(taint for taint in self.spec.taints if taint.key == names.OUT_OF_SERVICE)


class PresentOnly(Facts, frozen=True):
    """A field of which only the presence matters."""


class ClaimSource(Facts, frozen=True):
    """v1.PersistentVolumeClaimVolumeSource."""

    claim_name: str


class PodVolume(Facts, frozen=True):
    """v1.Volume, of the two kinds that refer to a claim."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: PresentOnly | None = None

    def claim_name(self, pod: str) -> str:
        """The name of its claim in a pod of that name; empty if it has none."""
        if self.persistent_volume_claim:
            return self.persistent_volume_claim.claim_name
        return f"{pod}-{self.name}" if self.ephemeral else ""


class SnapshotPodSpec(Facts, frozen=True):
    """v1.PodSpec."""

    node_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[PodVolume, ...] = ()


class ContainerState(Facts, frozen=True):
    """v1.ContainerState; a container that is neither waiting nor terminated counts as running."""

    waiting: PresentOnly | None = None
    terminated: PresentOnly | None = None


class ContainerStatus(Facts, frozen=True):
    """v1.ContainerStatus."""

    state: ContainerState = ContainerState()

    @property
    def is_running(self) -> bool:
        """Whether the container counts as running, as far as its status tells."""
        return self.state.waiting is None and self.state.terminated is None


class SnapshotPodStatus(Facts, frozen=True):
    """v1.PodStatus; the API server defaults the phase to Pending."""

    phase: str = "Pending"
    reason: str = ""
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()


class SnapshotPod(Facts, frozen=True):
    """v1.Pod."""

    metadata: SnapshotPodMeta
    spec: SnapshotPodSpec = SnapshotPodSpec()
    status: SnapshotPodStatus = SnapshotPodStatus()

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name

    @property
    def is_terminating(self) -> bool:
        """Whether it is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_running(self) -> bool:
        """Whether a container of any kind is neither waiting nor terminated."""
        status = self.status
        every = status.init_container_statuses + status.container_statuses + status.ephemeral_container_statuses
        return any(one.is_running for one in every)

    @property
    def claim_names(self) -> tuple[str, ...]:
        """The names of its volumes' claims; those of generic ephemeral volumes derive from the pod's name."""
        return tuple(claim for volume in self.spec.volumes if (claim := volume.claim_name(self.metadata.name)))


class AttachmentSource(Facts, frozen=True):
    """v1.VolumeAttachmentSource; an inline volume is not read."""

    persistent_volume_name: str = ""


class AttachmentSpec(Facts, frozen=True):
    """v1.VolumeAttachmentSpec."""

    node_name: Text
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Facts, frozen=True):
    """storage.k8s.io/v1 VolumeAttachment."""

    metadata: ObjectMeta
    spec: AttachmentSpec


class LeaseSpec(Facts, frozen=True):
    """v1.LeaseSpec."""

    renew_time: Time | None = None


class Lease(Facts, frozen=True):
    """coordination.k8s.io/v1 Lease."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


class CSISource(Facts, frozen=True):
    """v1.CSIPersistentVolumeSource."""

    driver: Text
    volume_handle: Text


class ClaimReference(Facts, frozen=True):
    """The claim that a volume is bound to (v1.ObjectReference)."""

    name: str = ""
    namespace: str = "default"


class VolumeSpec(Facts, frozen=True):
    """v1.PersistentVolumeSpec."""

    csi: CSISource | None = None
    claim_ref: ClaimReference | None = None


class VolumeStatus(Facts, frozen=True):
    """v1.PersistentVolumeStatus."""

    phase: str = ""


class PersistentVolume(Facts, frozen=True):
    """v1.PersistentVolume."""

    metadata: ObjectMeta
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class Snapshot(Facts, frozen=True):
    """All objects at one moment."""

    nodes: tuple[Node, ...] = ()
    pods: tuple[SnapshotPod, ...] = ()
    attachments: tuple[VolumeAttachment, ...] = ()
    leases: tuple[Lease, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
