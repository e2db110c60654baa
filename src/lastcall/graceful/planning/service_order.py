"""Which pods end after others of their phase, because these need them until they have ended (pure).

Only what an agent keeps of its own pods counts (``model.own_pods``), so DNS is recognised by its labels. CSI drivers are
not among them: their SIGTERM waits for volumes (``graceful.cluster.pod_volumes``).
"""

import re
from collections.abc import Iterator

from lastcall.model.own_pods import serves_other_pods
from lastcall.model.pods import Pod

_CNI_DIRECTORY = re.compile(r"/cni(/net\.d|/bin)?/?$")
"""``/etc/cni/net.d`` and ``/opt/cni/bin`` of the runtimes, their parents, and those of distributions."""

_NODE_CACHES = ("node-local-dns", "nodelocaldns")
"""Values of the label ``k8s-app`` on a DNS cache of the node (Kubernetes' addon, kubespray)."""

_CLUSTER_DNS = "kube-dns"
"""The same on CoreDNS and kube-dns, as every installer labels them: their Service has this selector."""

_OPENSHIFT_DNS = "dns.operator.openshift.io/daemonset-dns"


def needs(pod: Pod, service: Pod) -> bool:
    """Whether ``pod`` needs ``service``, a network plugin or DNS, until it has ended. No two pods need each other."""
    if is_network_plugin(service) and not pod.spec.host_network:
        return True
    return is_labelled_dns(service) and asks_cluster_dns(pod) and not (is_labelled_dns(pod) or serves_other_pods(pod))


def is_network_plugin(pod: Pod) -> bool:
    """Whether the pod is a network plugin's agent: a DaemonSet's, in the host's network, with the CNI's directories."""
    owners = pod.metadata.owner_references or ()
    is_agent = pod.spec.host_network and any(owner.kind == "DaemonSet" for owner in owners)
    return is_agent and any(map(_CNI_DIRECTORY.search, host_paths(pod)))


def is_node_cache(pod: Pod) -> bool:
    """Whether the pod is a DNS cache of its node, or OpenShift's DNS, which has a pod on each node."""
    labels = pod.metadata.labels or {}
    return labels.get("k8s-app") in _NODE_CACHES or _OPENSHIFT_DNS in labels


def is_labelled_dns(pod: Pod) -> bool:
    """Whether the pod's labels are those of the cluster's DNS or of a cache of the node."""
    return is_node_cache(pod) or (pod.metadata.labels or {}).get("k8s-app") == _CLUSTER_DNS


def asks_cluster_dns(pod: Pod) -> bool:
    """Whether the pod resolves names by the cluster's DNS; in the host's network ``ClusterFirst`` is ``Default``."""
    policy = pod.spec.dns_policy
    return policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not pod.spec.host_network)


def host_paths(pod: Pod) -> Iterator[str]:
    """The directories and files of the host that the pod may mount."""
    return (one.host_path.path for one in pod.spec.volumes or () if one.host_path)
