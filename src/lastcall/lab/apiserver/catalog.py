"""The resources that are built in: one line each, by group, with the names of Kubernetes' discovery documents."""

from collections.abc import Sequence
from typing import Any

from lastcall.lab.apiserver.custom.definition import Definition
from lastcall.lab.apiserver.kinds.admission_policies import MutatingPolicy, ValidatingPolicy
from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.kinds.budgets import PodDisruptionBudget, PriorityClass
from lastcall.lab.apiserver.kinds.claims import PersistentVolume, PersistentVolumeClaim
from lastcall.lab.apiserver.kinds.configuration import ComponentStatus, ConfigMap, Secret, ServiceAccount
from lastcall.lab.apiserver.kinds.daemons import DaemonSet
from lastcall.lab.apiserver.kinds.endpoints import Endpoints, EndpointSlice
from lastcall.lab.apiserver.kinds.events import RENAMED, Event, NewEvent
from lastcall.lab.apiserver.kinds.jobs import CronJob, Job
from lastcall.lab.apiserver.kinds.leases import Lease
from lastcall.lab.apiserver.kinds.namespaces import Namespace
from lastcall.lab.apiserver.kinds.networks import HorizontalPodAutoscaler, NetworkPolicy
from lastcall.lab.apiserver.kinds.nodes import Node
from lastcall.lab.apiserver.kinds.pods import Pods
from lastcall.lab.apiserver.kinds.policy_bindings import PolicyBinding
from lastcall.lab.apiserver.kinds.rbac import Binding, Role
from lastcall.lab.apiserver.kinds.replicas import Deployment, ReplicaSet
from lastcall.lab.apiserver.kinds.services import Service
from lastcall.lab.apiserver.kinds.stateful import ControllerRevision, StatefulSet
from lastcall.lab.apiserver.kinds.storage import CSIDriver, CSINode, StorageClass, VolumeAttachment
from lastcall.lab.apiserver.kinds.webhooks import WebhookConfiguration
from lastcall.lab.apiserver.scheme import Resource

_STATUS = ("status",)
_POD = ("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "resize", "status")
_NAMESPACE = ("finalize", "status")
_ONE_BY_ONE = ("create", "delete", "get", "list", "patch", "update", "watch")
_SCALE = ("scale", "status")
_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)


def built_in() -> Sequence[Resource]:
    """All of them, with their names, subresources and behaviour."""
    return [*_core(), *_events(), *_workloads(), *_services(), *_storage(), *_rbac(), *_reviews(), *_others()]


def _core() -> Sequence[Resource]:
    return [
        _of("v1", "bindings", "Binding", Behaviour(), verbs=["create"]),
        _cluster(
            "v1", "componentstatuses", "ComponentStatus", ComponentStatus(), short_names=["cs"], verbs=["get", "list"]
        ),
        _of("v1", "configmaps", "ConfigMap", ConfigMap(), short_names=["cm"]),
        _cluster(
            "v1",
            "namespaces",
            "Namespace",
            Namespace(),
            short_names=["ns"],
            subresources=_NAMESPACE,
            verbs=_ONE_BY_ONE,
        ),
        _cluster("v1", "nodes", "Node", Node(), short_names=["no"], subresources=_STATUS),
        _of("v1", "pods", "Pod", Pods(), short_names=["po"], categories=_ALL, subresources=_POD),
        _of("v1", "secrets", "Secret", Secret()),
        _of("v1", "serviceaccounts", "ServiceAccount", ServiceAccount(), short_names=["sa"], subresources=["token"]),
    ]


def _events() -> Sequence[Resource]:
    return [
        _of("v1", "events", "Event", Event(), short_names=["ev"]),
        _of(
            "events.k8s.io/v1",
            "events",
            "Event",
            NewEvent(),
            short_names=["ev"],
            stored_as="events",
            renamed=RENAMED,
        ),
    ]


def _workloads() -> Sequence[Resource]:
    return [
        _of("apps/v1", "controllerrevisions", "ControllerRevision", ControllerRevision()),
        _of("apps/v1", "daemonsets", "DaemonSet", DaemonSet(), short_names=["ds"], **_workload(_STATUS)),
        _of("apps/v1", "deployments", "Deployment", Deployment(), short_names=["deploy"], **_workload(_SCALE)),
        _of("apps/v1", "replicasets", "ReplicaSet", ReplicaSet(), short_names=["rs"], **_workload(_SCALE)),
        _of("apps/v1", "statefulsets", "StatefulSet", StatefulSet(), short_names=["sts"], **_workload(_SCALE)),
        _of("batch/v1", "cronjobs", "CronJob", CronJob(), short_names=["cj"], **_workload(_STATUS)),
        _of("batch/v1", "jobs", "Job", Job(), **_workload(_STATUS)),
        _of(
            "autoscaling/v2",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            HorizontalPodAutoscaler(),
            short_names=["hpa"],
            **_workload(_STATUS),
        ),
        _of(
            "policy/v1",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            PodDisruptionBudget(),
            short_names=["pdb"],
            subresources=_STATUS,
        ),
        _cluster("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", PriorityClass(), short_names=["pc"]),
    ]


def _services() -> Sequence[Resource]:
    return [
        _of("v1", "services", "Service", Service(), short_names=["svc"], **_workload(_STATUS)),
        _of("v1", "endpoints", "Endpoints", Endpoints(), short_names=["ep"], singular="endpoints"),
        _of("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", EndpointSlice()),
        _of("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", NetworkPolicy(), short_names=["netpol"]),
    ]


def _storage() -> Sequence[Resource]:
    group = "storage.k8s.io/v1"
    return [
        _of(
            "v1",
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            PersistentVolumeClaim(),
            short_names=["pvc"],
            subresources=_STATUS,
        ),
        _cluster(
            "v1", "persistentvolumes", "PersistentVolume", PersistentVolume(), short_names=["pv"], subresources=_STATUS
        ),
        _cluster(group, "csidrivers", "CSIDriver", CSIDriver()),
        _cluster(group, "csinodes", "CSINode", CSINode()),
        _cluster(group, "storageclasses", "StorageClass", StorageClass(), short_names=["sc"]),
        _cluster(group, "volumeattachments", "VolumeAttachment", VolumeAttachment(), subresources=_STATUS),
    ]


def _rbac() -> Sequence[Resource]:
    group = "rbac.authorization.k8s.io/v1"
    return [
        _cluster(group, "clusterrolebindings", "ClusterRoleBinding", Binding(namespaced=False)),
        _cluster(group, "clusterroles", "ClusterRole", Role(namespaced=False)),
        _of(group, "rolebindings", "RoleBinding", Binding(namespaced=True)),
        _of(group, "roles", "Role", Role(namespaced=True)),
    ]


def _reviews() -> Sequence[Resource]:
    who, may, only = "authentication.k8s.io/v1", "authorization.k8s.io/v1", ["create"]
    return [
        _cluster(who, "selfsubjectreviews", "SelfSubjectReview", Behaviour(), verbs=only),
        _cluster(who, "tokenreviews", "TokenReview", Behaviour(), verbs=only),
        _of(may, "localsubjectaccessreviews", "LocalSubjectAccessReview", Behaviour(), verbs=only),
        _cluster(may, "selfsubjectaccessreviews", "SelfSubjectAccessReview", Behaviour(), verbs=only),
        _cluster(may, "selfsubjectrulesreviews", "SelfSubjectRulesReview", Behaviour(), verbs=only),
        _cluster(may, "subjectaccessreviews", "SubjectAccessReview", Behaviour(), verbs=only),
    ]


def _others() -> Sequence[Resource]:
    admission, extensions = "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1"
    return [
        _cluster(
            admission,
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
            WebhookConfiguration(mutating=True),
            categories=_EXTENSIONS,
        ),
        _cluster(
            admission,
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            WebhookConfiguration(mutating=False),
            categories=_EXTENSIONS,
        ),
        *_policies(admission),
        _cluster(
            extensions,
            "customresourcedefinitions",
            "CustomResourceDefinition",
            Definition(),
            short_names=["crd", "crds"],
            categories=_EXTENSIONS,
            subresources=_STATUS,
        ),
        _of("coordination.k8s.io/v1", "leases", "Lease", Lease()),
    ]


def _policies(group: str) -> Sequence[Resource]:
    validating, mutating = ValidatingPolicy(), MutatingPolicy()
    more: dict[str, Any] = {"categories": _EXTENSIONS}
    return [
        _cluster(group, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", mutating, **more),
        _cluster(
            group,
            "mutatingadmissionpolicybindings",
            "MutatingAdmissionPolicyBinding",
            PolicyBinding(mutating=True),
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
            PolicyBinding(mutating=False),
            **more,
        ),
    ]


def _workload(subresources: Sequence[str]) -> dict[str, Any]:
    return {"categories": _ALL, "subresources": subresources}


def _cluster(api_version: str, plural: str, kind: str, behaviour: Behaviour, **more: Any) -> Resource:
    return _of(api_version, plural, kind, behaviour, namespaced=False, **more)


def _of(api_version: str, plural: str, kind: str, behaviour: Behaviour, **more: Any) -> Resource:
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, plural, kind, behaviour, **{"singular": kind.lower(), **more})
