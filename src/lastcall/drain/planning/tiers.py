"""In which order the pods of a drain go: workloads, then what they depend on; in each by priority (pure)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

from lastcall.graceful.planning.node_services import ServiceKind, find_services
from lastcall.model.drain_facts import pod_name
from lastcall.model.node_pods import DnsService, NodePods
from lastcall.model.pods import SYSTEM_CRITICAL, Container, Pod, pod_priority

P = TypeVar("P", bound=Pod)

_CSI_SIDECAR = re.compile(
    r"(^|/|-)(kubernetes-csi/|csi-)(external-)?(provisioner|attacher|resizer|snapshotter)(-rhel\d+)?$"
)
"""Images of the sidecars that call a CSI driver's controller service, without tag and digest."""

WORKLOADS, SERVICES = 0, 1
"""The ranks: pods that others do not depend on, and those that others depend on."""


def arrange_tiers(pods: Iterable[P], dns: Sequence[DnsService] = ()) -> tuple[tuple[P, ...], ...]:
    """The pods in tiers, of which each goes when the one before it is gone; sorted by namespace and name in each.

    ``dns`` are the Services of the cluster's DNS.
    """
    pods = tuple(pods)
    names = find_dns_pods(pods, dns)
    tiers: dict[tuple[int, int], list[P]] = defaultdict(list)
    for pod in pods:
        tiers[SERVICES if pod_name(pod) in names or is_depended_on(pod) else WORKLOADS, pod_priority(pod)].append(pod)
    return tuple(tuple(sorted(tiers[place], key=pod_name)) for place in sorted(tiers))


def find_dns_pods(pods: Sequence[Pod], dns: Sequence[DnsService]) -> set[tuple[str, str]]:
    """The pods that are the cluster's DNS: behind its Service, or with the label that CoreDNS is installed with."""
    found = {
        pod_name(one.pod)
        for one in find_services(NodePods(pods=tuple(pods), dns=tuple(dns)))
        if one.kind is ServiceKind.DNS
    }
    return found | {pod_name(pod) for pod in pods if (pod.metadata.labels or {}).get("k8s-app") == "kube-dns"}


def is_depended_on(pod: Pod) -> bool:
    """Whether others depend on the pod: it is critical, or it is the controller of a CSI driver."""
    return pod_priority(pod) >= SYSTEM_CRITICAL or is_csi_controller(pod)


def is_csi_controller(pod: Pod) -> bool:
    """Whether a container has the image of a sidecar for the controller service of a CSI driver."""
    return any(map(_is_csi_sidecar, (*pod.spec.containers, *(pod.spec.init_containers or ()))))


def _is_csi_sidecar(container: Container) -> bool:
    image = container.image.partition("@")[0]
    before, slash, last = image.rpartition("/")
    return _CSI_SIDECAR.search(f"{before}{slash}{last.partition(':')[0]}") is not None
