"""The built-in resources, one line each, by group, with the names of Kubernetes' discovery documents."""

from collections.abc import Sequence
from typing import Any

from lastcall_lab.apiserver.custom.definition_kind import DefinitionKind
from lastcall_lab.apiserver.kinds.admission_policies import MutatingPolicyKind, ValidatingPolicyKind
from lastcall_lab.apiserver.kinds.budgets import PodDisruptionBudgetKind, PriorityClassKind
from lastcall_lab.apiserver.kinds.configuration import (
    ComponentStatusKind,
    ConfigMapKind,
    SecretKind,
    ServiceAccountKind,
)
from lastcall_lab.apiserver.kinds.daemon_sets import DaemonSetKind
from lastcall_lab.apiserver.kinds.deployments import DeploymentKind, ReplicaSetKind
from lastcall_lab.apiserver.kinds.endpoints import EndpointsKind, EndpointSliceKind
from lastcall_lab.apiserver.kinds.events import RENAMED, EventKind, NewEventKind
from lastcall_lab.apiserver.kinds.jobs import CronJobKind, JobKind
from lastcall_lab.apiserver.kinds.leases import LeaseKind
from lastcall_lab.apiserver.kinds.namespaces import NamespaceKind
from lastcall_lab.apiserver.kinds.networks import HorizontalPodAutoscalerKind, NetworkPolicyKind
from lastcall_lab.apiserver.kinds.nodes import NodeKind
from lastcall_lab.apiserver.kinds.persistent_volumes import PersistentVolumeClaimKind, PersistentVolumeKind
from lastcall_lab.apiserver.kinds.pods import PodKind
from lastcall_lab.apiserver.kinds.policy_bindings import PolicyBindingKind
from lastcall_lab.apiserver.kinds.rbac import RoleBindingKind, RoleKind
from lastcall_lab.apiserver.kinds.services import ServiceKind
from lastcall_lab.apiserver.kinds.stateful_sets import ControllerRevisionKind, StatefulSetKind
from lastcall_lab.apiserver.kinds.storage_classes import (
    CSIDriverKind,
    CSINodeKind,
    StorageClassKind,
    VolumeAttachmentKind,
)
from lastcall_lab.apiserver.kinds.webhooks import WebhookConfigurationKind
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.resources.scheme import ServedResource

_STATUS = ("status",)
_POD = ("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "resize", "status")
_NAMESPACE = ("finalize", "status")
_ONE_BY_ONE = ("create", "delete", "get", "list", "patch", "update", "watch")
_SCALE = ("scale", "status")
_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)


def built_in_resources() -> Sequence[ServedResource]:
    """All built-in resources with their names, subresources and behaviour."""
    return [*_core(), *_events(), *_workloads(), *_services(), *_storage(), *_rbac(), *_reviews(), *_others()]


def _core() -> Sequence[ServedResource]:
    return [
        _of("v1", "bindings", "Binding", KindBehaviour(), verbs=["create"]),
        _cluster(
            "v1",
            "componentstatuses",
            "ComponentStatus",
            ComponentStatusKind(),
            short_names=["cs"],
            verbs=["get", "list"],
        ),
        _of("v1", "configmaps", "ConfigMap", ConfigMapKind(), short_names=["cm"]),
        _cluster(
            "v1",
            "namespaces",
            "Namespace",
            NamespaceKind(),
            short_names=["ns"],
            subresources=_NAMESPACE,
            verbs=_ONE_BY_ONE,
        ),
        _cluster("v1", "nodes", "Node", NodeKind(), short_names=["no"], subresources=_STATUS),
        _of("v1", "pods", "Pod", PodKind(), short_names=["po"], categories=_ALL, subresources=_POD),
        _of("v1", "secrets", "Secret", SecretKind()),
        _of(
            "v1",
            "serviceaccounts",
            "ServiceAccount",
            ServiceAccountKind(),
            short_names=["sa"],
            subresources=["token"],
        ),
    ]


def _events() -> Sequence[ServedResource]:
    return [
        _of("v1", "events", "Event", EventKind(), short_names=["ev"]),
        _of(
            "events.k8s.io/v1",
            "events",
            "Event",
            NewEventKind(),
            short_names=["ev"],
            stored_as="events",
            renamed=RENAMED,
        ),
    ]


def _workloads() -> Sequence[ServedResource]:
    return [
        _of("apps/v1", "controllerrevisions", "ControllerRevision", ControllerRevisionKind()),
        _of("apps/v1", "daemonsets", "DaemonSet", DaemonSetKind(), short_names=["ds"], **_workload(_STATUS)),
        _of("apps/v1", "deployments", "Deployment", DeploymentKind(), short_names=["deploy"], **_workload(_SCALE)),
        _of("apps/v1", "replicasets", "ReplicaSet", ReplicaSetKind(), short_names=["rs"], **_workload(_SCALE)),
        _of("apps/v1", "statefulsets", "StatefulSet", StatefulSetKind(), short_names=["sts"], **_workload(_SCALE)),
        _of("batch/v1", "cronjobs", "CronJob", CronJobKind(), short_names=["cj"], **_workload(_STATUS)),
        _of("batch/v1", "jobs", "Job", JobKind(), **_workload(_STATUS)),
        _of(
            "autoscaling/v2",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            HorizontalPodAutoscalerKind(),
            short_names=["hpa"],
            **_workload(_STATUS),
        ),
        _of(
            "policy/v1",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            PodDisruptionBudgetKind(),
            short_names=["pdb"],
            subresources=_STATUS,
        ),
        _cluster("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", PriorityClassKind(), short_names=["pc"]),
    ]


def _services() -> Sequence[ServedResource]:
    return [
        _of("v1", "services", "Service", ServiceKind(), short_names=["svc"], **_workload(_STATUS)),
        _of("v1", "endpoints", "Endpoints", EndpointsKind(), short_names=["ep"], singular="endpoints"),
        _of("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", EndpointSliceKind()),
        _of("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", NetworkPolicyKind(), short_names=["netpol"]),
    ]


def _storage() -> Sequence[ServedResource]:
    group = "storage.k8s.io/v1"
    return [
        _of(
            "v1",
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            PersistentVolumeClaimKind(),
            short_names=["pvc"],
            subresources=_STATUS,
        ),
        _cluster(
            "v1",
            "persistentvolumes",
            "PersistentVolume",
            PersistentVolumeKind(),
            short_names=["pv"],
            subresources=_STATUS,
        ),
        _cluster(group, "csidrivers", "CSIDriver", CSIDriverKind()),
        _cluster(group, "csinodes", "CSINode", CSINodeKind()),
        _cluster(group, "storageclasses", "StorageClass", StorageClassKind(), short_names=["sc"]),
        _cluster(group, "volumeattachments", "VolumeAttachment", VolumeAttachmentKind(), subresources=_STATUS),
    ]


def _rbac() -> Sequence[ServedResource]:
    group = "rbac.authorization.k8s.io/v1"
    return [
        _cluster(group, "clusterrolebindings", "ClusterRoleBinding", RoleBindingKind(namespaced=False)),
        _cluster(group, "clusterroles", "ClusterRole", RoleKind(namespaced=False)),
        _of(group, "rolebindings", "RoleBinding", RoleBindingKind(namespaced=True)),
        _of(group, "roles", "Role", RoleKind(namespaced=True)),
    ]


def _reviews() -> Sequence[ServedResource]:
    who, may, only = "authentication.k8s.io/v1", "authorization.k8s.io/v1", ["create"]
    return [
        _cluster(who, "selfsubjectreviews", "SelfSubjectReview", KindBehaviour(), verbs=only),
        _cluster(who, "tokenreviews", "TokenReview", KindBehaviour(), verbs=only),
        _of(may, "localsubjectaccessreviews", "LocalSubjectAccessReview", KindBehaviour(), verbs=only),
        _cluster(may, "selfsubjectaccessreviews", "SelfSubjectAccessReview", KindBehaviour(), verbs=only),
        _cluster(may, "selfsubjectrulesreviews", "SelfSubjectRulesReview", KindBehaviour(), verbs=only),
        _cluster(may, "subjectaccessreviews", "SubjectAccessReview", KindBehaviour(), verbs=only),
    ]


def _others() -> Sequence[ServedResource]:
    admission, extensions = "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1"
    return [
        _cluster(
            admission,
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
            WebhookConfigurationKind(mutating=True),
            categories=_EXTENSIONS,
        ),
        _cluster(
            admission,
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            WebhookConfigurationKind(mutating=False),
            categories=_EXTENSIONS,
        ),
        *_policies(admission),
        _cluster(
            extensions,
            "customresourcedefinitions",
            "CustomResourceDefinition",
            DefinitionKind(),
            short_names=["crd", "crds"],
            categories=_EXTENSIONS,
            subresources=_STATUS,
        ),
        _of("coordination.k8s.io/v1", "leases", "Lease", LeaseKind()),
    ]


def _policies(group: str) -> Sequence[ServedResource]:
    validating, mutating = ValidatingPolicyKind(), MutatingPolicyKind()
    more: dict[str, Any] = {"categories": _EXTENSIONS}
    return [
        _cluster(group, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", mutating, **more),
        _cluster(
            group,
            "mutatingadmissionpolicybindings",
            "MutatingAdmissionPolicyBinding",
            PolicyBindingKind(mutating=True),
            **more,
        ),
        _cluster(
            group,
            "validatingadmissionpolicies",
            "ValidatingAdmissionPolicy",
            validating,
            subresources=_STATUS,
            **more,
        ),
        _cluster(
            group,
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
            PolicyBindingKind(mutating=False),
            **more,
        ),
    ]


def _workload(subresources: Sequence[str]) -> dict[str, Any]:
    return {"categories": _ALL, "subresources": subresources}


def _cluster(api_version: str, plural: str, kind: str, behaviour: KindBehaviour, **more: Any) -> ServedResource:
    return _of(api_version, plural, kind, behaviour, namespaced=False, **more)


def _of(api_version: str, plural: str, kind: str, behaviour: KindBehaviour, **more: Any) -> ServedResource:
    group, _, version = api_version.rpartition("/")
    return ServedResource(group, version, plural, kind, behaviour, **{"singular": kind.lower(), **more})
