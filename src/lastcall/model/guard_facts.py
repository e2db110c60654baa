"""What decides whether a pod may be deleted: the pod's surroundings in the cluster at one moment."""

from collections.abc import Mapping

from lastcall.model.base import Facts, Time
from lastcall.model.budgets import Budget
from lastcall.model.guard_config import DEFAULTS, GuardConfig
from lastcall.model.guard_policy import GuardPolicy
from lastcall.model.pods import OwnerReference, Pod
from lastcall.model.tolerations import Taint, Toleration


class GuardedMetadata(Facts, frozen=True):
    """v1.ObjectMeta of a Namespace, Node or owner."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class GuardedNodeSpec(Facts, frozen=True):
    """v1.NodeSpec."""

    taints: tuple[Taint, ...] | None = None


class GuardedNode(Facts, frozen=True):
    """v1.Node."""

    metadata: GuardedMetadata
    spec: GuardedNodeSpec = GuardedNodeSpec()


class GuardedTaint(Taint, frozen=True):
    """v1.Taint."""

    time_added: Time | None = None


class PodTaints(Facts, frozen=True):
    """The taints of a pod's node, and what the pod tolerates. Without taints if the pod or its node is gone."""

    taints: tuple[GuardedTaint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class GuardedNamespaceStatus(Facts, frozen=True):
    """v1.NamespaceStatus."""

    phase: str = "Active"


class GuardedNamespace(Facts, frozen=True):
    """v1.Namespace."""

    metadata: GuardedMetadata
    status: GuardedNamespaceStatus = GuardedNamespaceStatus()

    @property
    def is_terminating(self) -> bool:
        """Whether it is being deleted."""
        return self.metadata.deletion_timestamp is not None or self.status.phase == "Terminating"


class StatefulSetOrdinals(Facts, frozen=True):
    """apps/v1 StatefulSetOrdinals."""

    start: int = 0


class WorkloadSpec(Facts, frozen=True):
    """The number of replicas of a scalable workload; None for other objects."""

    replicas: int | None = None
    ordinals: StatefulSetOrdinals | None = None


class WorkloadStatus(Facts, frozen=True):
    """How many pods a workload has; ``update_revision`` is a StatefulSet's."""

    replicas: int = 0
    update_revision: str = ""


class WorkloadOwner(Facts, frozen=True):
    """An object of any kind that may control pods or other owners."""

    kind: str
    metadata: GuardedMetadata
    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None


class GuardFacts(Facts, frozen=True, weakref=True, gc=True):
    """The objects of a cluster that matter to a review. Namespaces and nodes by name, owners by uid.

    ``config`` is what the administrator has decided about all of them.
    """

    pods: tuple[Pod, ...] = ()
    namespaces: Mapping[str, GuardedNamespace] = {}
    nodes: Mapping[str, GuardedNode] = {}
    owners: Mapping[str, WorkloadOwner] = {}
    budgets: tuple[Budget, ...] = ()
    policies: tuple[GuardPolicy, ...] = ()
    config: GuardConfig = DEFAULTS

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """The pod of that name; None if there is none."""
        return next(
            (pod for pod in self.pods if (pod.metadata.namespace, pod.metadata.name) == (namespace, name)), None
        )
