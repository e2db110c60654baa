"""Pods that other pods of their node need until these have ended: CSI drivers, network plugins, DNS (pure).

No API says which pod is one, so they are recognised by what each must do on a node: a CSI driver puts its socket below
the kubelet's directory ``plugins``; a network plugin keeps its configuration or its binaries where the container runtime
looks for them; DNS is behind the Service with the label ``k8s-app: kube-dns``, or is a cache of the node.
"""

from collections.abc import Iterable, Iterator
from enum import Enum

from lastcall.graceful.planning.service_order import asks_cluster_dns, host_paths, is_network_plugin, is_node_cache
from lastcall.model.base import Facts
from lastcall.model.node_pods import NodePods, pod_claims
from lastcall.model.own_pods import is_plugin_directory
from lastcall.model.pods import Pod


class ServiceKind(Enum):
    """What other pods of the node need a pod for."""

    CSI = "CSI"  # their volumes are unmounted by it
    CNI = "CNI"  # their network
    DNS = "DNS"  # names


class NodeService(Facts, frozen=True):
    """A pod that others need; ``drivers`` are the CSI drivers that it is."""

    kind: ServiceKind
    pod: Pod
    drivers: tuple[str, ...] = ()


def find_services(node: NodePods) -> tuple[NodeService, ...]:
    """All pods of the node that others need, in the order of the pods; a pod may be of several kinds."""
    return tuple(service for pod in node.pods if not pod.is_finished for service in _pod_services(pod, node))


def is_user(service: NodeService, pod: Pod, node: NodePods) -> bool:
    """Whether ``pod`` needs ``service``. No pod needs itself, and none that is a service itself counts for DNS."""
    if pod.key == service.pod.key or pod.is_finished:
        return False
    if service.kind is ServiceKind.CSI:
        return not set(service.drivers).isdisjoint(_used_drivers(pod, node))
    if service.kind is ServiceKind.CNI:
        return not pod.spec.host_network
    return asks_cluster_dns(pod) and not any(_pod_services(pod, node))


def _pod_services(pod: Pod, node: NodePods) -> Iterator[NodeService]:
    drivers = _own_drivers(pod, node.drivers)
    if drivers:
        yield NodeService(kind=ServiceKind.CSI, pod=pod, drivers=drivers)
    if is_network_plugin(pod):
        yield NodeService(kind=ServiceKind.CNI, pod=pod)
    if _is_dns(pod, node):
        yield NodeService(kind=ServiceKind.DNS, pod=pod)


def _own_drivers(pod: Pod, known: Iterable[str]) -> tuple[str, ...]:
    """The drivers of the node whose directory below ``plugins`` the pod names, in a volume or to one of its programs."""
    paths = list(host_paths(pod))
    if not any(map(is_plugin_directory, paths)):
        return ()
    words = [*paths, *_program_words(pod)]
    return tuple(name for name in known if any(_names_driver(word, name) for word in words))


def _names_driver(word: str, name: str) -> bool:
    at = word.find(f"/plugins/{name}")
    return at >= 0 and word[at + len(f"/plugins/{name}") :][:1] in ("", "/")


def _program_words(pod: Pod) -> Iterator[str]:
    for one in pod.spec.containers:
        yield from one.command or ()
        yield from one.args or ()
        yield from (variable.value for variable in one.env or ())


def _used_drivers(pod: Pod, node: NodePods) -> Iterator[str]:
    yield from (node.claim_drivers[claim] for claim in pod_claims(pod) if claim in node.claim_drivers)
    yield from (one.csi.driver for one in pod.spec.volumes or () if one.csi)


def _is_dns(pod: Pod, node: NodePods) -> bool:
    labels = pod.metadata.labels or {}
    behind = any(
        one.selector and one.namespace == pod.metadata.namespace and one.selector.items() <= labels.items()
        for one in node.dns
    )
    return behind or is_node_cache(pod)
