"""What an API server knows of one node's pods, and of what these need from each other (pure)."""

import msgspec

from lastcall.model.base import Facts
from lastcall.model.pods import Pod


class PriorityClass(Facts, frozen=True):
    """A PriorityClass: its name and its value."""

    name: str
    value: int


class DnsService(Facts, frozen=True):
    """A Service of the cluster's DNS: its namespace, and the labels of the pods behind it."""

    namespace: str
    selector: dict[str, str]


class NodePods(Facts, frozen=True):
    """The pods of a node, and facts about them.

    ``claim_drivers`` has the CSI driver of each claim (``namespace/name``) whose volume is one of CSI. ``drivers`` are
    those that the node has, by its CSINode. ``warnings`` say what could not be read.
    """

    pods: tuple[Pod, ...]
    classes: tuple[PriorityClass, ...] = ()
    claim_drivers: dict[str, str] = msgspec.field(default_factory=dict)
    drivers: tuple[str, ...] = ()
    dns: tuple[DnsService, ...] = ()
    warnings: tuple[str, ...] = ()


def pod_claims(pod: Pod) -> tuple[str, ...]:
    """The PersistentVolumeClaims that the pod mounts, as ``namespace/name``; those of ephemeral volumes too."""
    volumes = pod.spec.volumes or ()
    named = [one.persistent_volume_claim.claim_name for one in volumes if one.persistent_volume_claim]
    own = [f"{pod.metadata.name}-{one.name}" for one in volumes if one.ephemeral]
    return tuple(f"{pod.metadata.namespace}/{name}" for name in (*named, *own))
