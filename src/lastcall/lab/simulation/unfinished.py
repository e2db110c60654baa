"""What has not come to its end, and does not say what it waits for."""

from collections.abc import Iterator, Sequence

from lastcall.adapters.kube.resources import ATTACHMENTS, NODES, PODS, Object
from lastcall.lab.simulation.cluster import Cluster, condition


def left(cluster: Cluster) -> Sequence[str]:
    """Sentences. What waits for a machine that is not there, or says why it waits, is not in it."""
    present = {node["metadata"]["name"] for node in cluster.all(NODES) if condition(node, "Ready") == "True"}
    return [*_nodes(cluster, present), *_pods(cluster, present), *_attachments(cluster, present)]


def _nodes(cluster: Cluster, present: set[str]) -> Iterator[str]:
    for name, machine in cluster.machines.items():
        if machine.switch.value == "on" and name not in present:
            yield f"{name} is on, and not ready"


def _pods(cluster: Cluster, present: set[str]) -> Iterator[str]:
    for pod in cluster.all(PODS):
        name, node = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}", pod["spec"].get("nodeName")
        phase = (pod.get("status") or {}).get("phase", "Pending")
        if node and node not in present:
            continue
        if pod["metadata"].get("deletionTimestamp"):
            yield f"pod {name} is Terminating on {node or 'no node'}"
        elif phase == "Pending" and not _says_why(pod):
            yield f"pod {name} is Pending on {node or 'no node'}, and does not say why"
        elif phase == "Running" and condition(pod, "Ready") != "True":
            yield f"pod {name} runs on {node}, and is not ready"


def _says_why(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "PodScheduled" and one["status"] == "False" and one.get("message") for one in conditions)


def _attachments(cluster: Cluster, present: set[str]) -> Iterator[str]:
    for one in cluster.all(ATTACHMENTS):
        if one["metadata"].get("deletionTimestamp") and one["spec"]["nodeName"] in present:
            yield f"volume attachment {one['metadata']['name']} is not detached from {one['spec']['nodeName']}"
