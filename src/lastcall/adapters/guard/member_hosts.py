"""Which pod an address belongs to that an application knows of a member (pure)."""

from lastcall.model.pods import Pod


def is_host_of(host: str, pod: Pod) -> bool:
    """Whether it is the pod's IP, or a name in DNS that begins with its name and, if it has more labels, its namespace."""
    if host and host == pod.status.pod_ip:
        return True
    labels = host.split(".")
    return labels[0] == pod.metadata.name and (len(labels) < 3 or labels[2] == pod.metadata.namespace)


def short_host(host: str) -> str:
    """The first label of a name in DNS, which is that of a pod; an IP address as it is."""
    first = host.partition(".")[0]
    return host if first.isdigit() or ":" in host else first
