"""Reads what decides about a drain from a file: ``kubectl get nodes,pods,... -A -o json`` (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from lastcall.errors import InvalidInput
from lastcall.model.base import Facts
from lastcall.model.budget_file import BUDGET_KIND
from lastcall.model.drain_facts import DrainNode, DrainPod
from lastcall.model.drain_objects import (
    CsiNode,
    DeviceTaintRule,
    DrainClaim,
    DrainDaemonSet,
    DrainFacts,
    DrainVolume,
    Machine,
    NodeMaintenance,
    OwnerLease,
    OwnerPlace,
    ServiceSlice,
    ValidatingConfiguration,
)
from lastcall.model.guard_facts import GuardedNamespace
from lastcall.model.guard_policy import GuardPolicy
from lastcall.model.guard_policy_rules import guard_violations
from lastcall.model.list_file import FileKind, FoundObjects, read_list
from lastcall.model.node_pods import DnsService
from lastcall.model.pods import ObjectMetadata
from lastcall.model.surge_facts import Autoscaler, SurgeableSpec, SurgeableStatus, SurgeableWorkload
from lastcall.names import API_VERSION, GUARD_POLICY

DNS_LABEL: Final = ("k8s-app", "kube-dns")
"""The label of the Service of the cluster's DNS."""

_WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


class ListedWorkload(Facts, frozen=True):
    """A workload in a list of its kind, whose items do not say it."""

    metadata: ObjectMetadata
    spec: SurgeableSpec = SurgeableSpec()
    status: SurgeableStatus = SurgeableStatus()


class LabelledServiceSpec(Facts, frozen=True):
    """v1.ServiceSpec."""

    selector: dict[str, str] | None = None


class LabelledService(Facts, frozen=True):
    """v1.Service."""

    metadata: ObjectMetadata
    spec: LabelledServiceSpec = LabelledServiceSpec()


DRAIN_KINDS: Final[Mapping[str, FileKind]] = {
    "Node": FileKind("v1", DrainNode),
    "Pod": FileKind("v1", DrainPod, namespaced=True),
    "DaemonSet": FileKind("apps/v1", DrainDaemonSet, namespaced=True),
    "Service": FileKind("v1", LabelledService, namespaced=True),
    "Namespace": FileKind("v1", GuardedNamespace),
    "PodDisruptionBudget": BUDGET_KIND,
    GUARD_POLICY: FileKind(API_VERSION, GuardPolicy, namespaced=True),
    "Deployment": FileKind("apps/v1", ListedWorkload, namespaced=True),
    "ReplicaSet": FileKind("apps/v1", ListedWorkload, namespaced=True),
    "StatefulSet": FileKind("apps/v1", ListedWorkload, namespaced=True),
    "ReplicationController": FileKind("v1", ListedWorkload, namespaced=True),
    "HorizontalPodAutoscaler": FileKind("autoscaling/v2", Autoscaler, namespaced=True, any_version=True),
    "PersistentVolume": FileKind("v1", DrainVolume),
    "PersistentVolumeClaim": FileKind("v1", DrainClaim, namespaced=True),
    "CSINode": FileKind("storage.k8s.io/v1", CsiNode),
    "ValidatingWebhookConfiguration": FileKind("admissionregistration.k8s.io/v1", ValidatingConfiguration),
    "EndpointSlice": FileKind("discovery.k8s.io/v1", ServiceSlice, namespaced=True),
    "Lease": FileKind("coordination.k8s.io/v1", OwnerLease, namespaced=True),
    "NodeMaintenance": FileKind("nodemaintenance.medik8s.io/v1beta1", NodeMaintenance, any_version=True),
    "Machine": FileKind("cluster.x-k8s.io/v1beta2", Machine, namespaced=True, any_version=True),
    "DeviceTaintRule": FileKind("resource.k8s.io/v1", DeviceTaintRule, any_version=True),
}
"""What is read, in a file and in a cluster."""


class DrainState(NamedTuple):
    """The objects, and warnings about what is passed over."""

    facts: DrainFacts
    warnings: Sequence[str] = ()


def read_drain_state(data: bytes, source: str) -> DrainState:
    """The objects of a file, read by ``read_list``. InvalidInput lists every violation."""
    found = read_list(data, source, DRAIN_KINDS)
    wrong = [
        f"{GUARD_POLICY} {policy.metadata.namespace}/{policy.name}: {violation}"
        for policy in found.objects[GUARD_POLICY]
        for violation in guard_violations(policy.spec)
    ]
    if wrong:
        raise InvalidInput(source, wrong)
    return DrainState(join_facts(found.objects), tuple(_list_warnings(found, source)))


def join_facts(objects: Mapping[str, Sequence[Any]]) -> DrainFacts:
    """The facts in lists of objects by kind. DaemonSets and EndpointSlices of which there are none are not known."""

    def every(kind: str) -> tuple[Any, ...]:
        return tuple(objects.get(kind, ()))

    return DrainFacts(
        nodes=every("Node"),
        pods=every("Pod"),
        daemon_sets=every("DaemonSet") or None,
        dns=tuple(map(_dns_service, filter(_is_dns, every("Service")))),
        budgets=every("PodDisruptionBudget"),
        policies=every(GUARD_POLICY),
        namespaces={one.metadata.name: one for one in every("Namespace")},
        workloads=dict(_index_workload(kind, one) for kind in _WORKLOADS for one in every(kind)),
        autoscalers=every("HorizontalPodAutoscaler"),
        volumes={one.metadata.name: one for one in every("PersistentVolume")},
        claims={(one.metadata.namespace, one.metadata.name): one for one in every("PersistentVolumeClaim")},
        csi_nodes={one.metadata.name: one for one in every("CSINode")},
        webhooks=every("ValidatingWebhookConfiguration"),
        slices=every("EndpointSlice") or None,
        leases=every("Lease"),
        maintenances=every("NodeMaintenance"),
        machines=every("Machine"),
        device_taints=every("DeviceTaintRule"),
    )


def _index_workload(kind: str, workload: ListedWorkload) -> tuple[OwnerPlace, SurgeableWorkload]:
    metadata = workload.metadata
    found = SurgeableWorkload(kind=kind, metadata=metadata, spec=workload.spec, status=workload.status)
    return (kind, metadata.namespace, metadata.name), found


def _is_dns(service: LabelledService) -> bool:
    key, value = DNS_LABEL
    return (service.metadata.labels or {}).get(key) == value


def _dns_service(service: LabelledService) -> DnsService:
    return DnsService(namespace=service.metadata.namespace, selector=service.spec.selector or {})


def _list_warnings(found: FoundObjects, source: str) -> Iterator[str]:
    if found.others:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(found.others.items()))
        yield f"{source}: passed over: {kinds}"
