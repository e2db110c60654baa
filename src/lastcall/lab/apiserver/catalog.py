"""The resources that are built in: one line each, by group, with the names of Kubernetes' discovery documents."""

from collections.abc import Sequence
from typing import Any

from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.kinds.namespaces import Namespace
from lastcall.lab.apiserver.kinds.pods import Pods
from lastcall.lab.apiserver.scheme import Resource

_STATUS = ("status",)
_POD = ("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "resize", "status")
_NAMESPACE = ("finalize", "status")
_SCALE = ("scale", "status")
_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)


def built_in() -> Sequence[Resource]:
    """All of them, with their names, subresources and behaviour."""
    return [*_core(), *_events(), *_workloads(), *_services(), *_storage(), *_rbac(), *_others()]


def _core() -> Sequence[Resource]:
    return [
        _of("v1", "configmaps", "ConfigMap", Behaviour(), short_names=["cm"]),
        _cluster("v1", "namespaces", "Namespace", Namespace(), short_names=["ns"], subresources=_NAMESPACE),
        _cluster("v1", "nodes", "Node", Behaviour(), short_names=["no"], subresources=_STATUS),
        _of("v1", "pods", "Pod", Pods(), short_names=["po"], categories=_ALL, subresources=_POD),
        _of("v1", "secrets", "Secret", Behaviour()),
        _of("v1", "serviceaccounts", "ServiceAccount", Behaviour(), short_names=["sa"]),
    ]


def _events() -> Sequence[Resource]:
    return [
        _of("v1", "events", "Event", Behaviour(), short_names=["ev"]),
        _of("events.k8s.io/v1", "events", "Event", Behaviour(), short_names=["ev"], stored_as="events"),
    ]


def _workloads() -> Sequence[Resource]:
    return [
        _of("apps/v1", "controllerrevisions", "ControllerRevision", Behaviour()),
        _of("apps/v1", "daemonsets", "DaemonSet", Behaviour(), short_names=["ds"], **_workload(_STATUS)),
        _of("apps/v1", "deployments", "Deployment", Behaviour(), short_names=["deploy"], **_workload(_SCALE)),
        _of("apps/v1", "replicasets", "ReplicaSet", Behaviour(), short_names=["rs"], **_workload(_SCALE)),
        _of("apps/v1", "statefulsets", "StatefulSet", Behaviour(), short_names=["sts"], **_workload(_SCALE)),
        _of("batch/v1", "cronjobs", "CronJob", Behaviour(), short_names=["cj"], **_workload(_STATUS)),
        _of("batch/v1", "jobs", "Job", Behaviour(), **_workload(_STATUS)),
        _of(
            "autoscaling/v2",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            Behaviour(),
            short_names=["hpa"],
            **_workload(_STATUS),
        ),
        _of(
            "policy/v1",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            Behaviour(),
            short_names=["pdb"],
            subresources=_STATUS,
        ),
        _cluster("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", Behaviour(), short_names=["pc"]),
    ]


def _services() -> Sequence[Resource]:
    return [
        _of("v1", "services", "Service", Behaviour(), short_names=["svc"], **_workload(_STATUS)),
        _of("v1", "endpoints", "Endpoints", Behaviour(), short_names=["ep"]),
        _of("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", Behaviour()),
        _of("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", Behaviour(), short_names=["netpol"]),
    ]


def _storage() -> Sequence[Resource]:
    group = "storage.k8s.io/v1"
    return [
        _of(
            "v1",
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            Behaviour(),
            short_names=["pvc"],
            subresources=_STATUS,
        ),
        _cluster("v1", "persistentvolumes", "PersistentVolume", Behaviour(), short_names=["pv"], subresources=_STATUS),
        _cluster(group, "csidrivers", "CSIDriver", Behaviour()),
        _cluster(group, "csinodes", "CSINode", Behaviour()),
        _cluster(group, "storageclasses", "StorageClass", Behaviour(), short_names=["sc"]),
        _cluster(group, "volumeattachments", "VolumeAttachment", Behaviour(), subresources=_STATUS),
    ]


def _rbac() -> Sequence[Resource]:
    group = "rbac.authorization.k8s.io/v1"
    return [
        _cluster(group, "clusterrolebindings", "ClusterRoleBinding", Behaviour()),
        _cluster(group, "clusterroles", "ClusterRole", Behaviour()),
        _of(group, "rolebindings", "RoleBinding", Behaviour()),
        _of(group, "roles", "Role", Behaviour()),
    ]


def _others() -> Sequence[Resource]:
    admission, extensions = "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1"
    return [
        _cluster(
            admission,
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
            Behaviour(),
            categories=_EXTENSIONS,
        ),
        _cluster(
            admission,
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            Behaviour(),
            categories=_EXTENSIONS,
        ),
        _cluster(
            extensions,
            "customresourcedefinitions",
            "CustomResourceDefinition",
            Behaviour(),
            short_names=["crd", "crds"],
            categories=_EXTENSIONS,
            subresources=_STATUS,
        ),
        _of("coordination.k8s.io/v1", "leases", "Lease", Behaviour()),
    ]


def _workload(subresources: Sequence[str]) -> dict[str, Any]:
    return {"categories": _ALL, "subresources": subresources}


def _cluster(api_version: str, plural: str, kind: str, behaviour: Behaviour, **more: Any) -> Resource:
    return _of(api_version, plural, kind, behaviour, namespaced=False, **more)


def _of(api_version: str, plural: str, kind: str, behaviour: Behaviour, **more: Any) -> Resource:
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, plural, kind, behaviour, singular=kind.lower(), **more)
