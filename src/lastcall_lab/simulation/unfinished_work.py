"""Operations that have neither completed nor reported a reason to wait."""

from collections.abc import Callable, Iterator, Sequence

from lastcall.adapters.kube.resources import (
    ATTACHMENTS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    STATEFUL_SETS,
    ApiResource,
    Object,
)
from lastcall.model.pods import FINISHED
from lastcall_lab.controllers.workloads.job_failures import ended_at
from lastcall_lab.simulation.cluster import SimulatedCluster, condition_status

_LEFT_BEHIND = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints that a node that is ready has no more."""

_READY: Sequence[tuple[ApiResource[Object], Callable[[Object], int], str]] = (
    (DEPLOYMENTS, lambda one: one["spec"].get("replicas", 1), "readyReplicas"),
    (STATEFUL_SETS, lambda one: one["spec"].get("replicas", 1), "readyReplicas"),
    (DAEMON_SETS, lambda one: (one.get("status") or {}).get("desiredNumberScheduled", 0), "numberReady"),
)


def describe_unfinished(cluster: SimulatedCluster) -> Sequence[str]:
    """Sentences. What waits for a machine that is not there, or says why it waits, is not in it."""
    present = {
        node["metadata"]["name"] for node in cluster.list_objects(NODES) if condition_status(node, "Ready") == "True"
    }
    return [
        *_unfinished_nodes(cluster, present),
        *_leftover_taints(cluster, present),
        *_unfinished_pods(cluster, present),
        *_unfinished_workloads(cluster, present),
        *_unfinished_jobs(cluster),
        *_leftover_attachments(cluster, present),
    ]


def _unfinished_nodes(cluster: SimulatedCluster, present: set[str]) -> Iterator[str]:
    for name, machine in cluster.machines.items():
        if machine.switch.value == "on" and name not in present:
            yield f"{name} is on, and not ready"


def _leftover_taints(cluster: SimulatedCluster, present: set[str]) -> Iterator[str]:
    for node in cluster.list_objects(NODES):
        name, taints = node["metadata"]["name"], node["spec"].get("taints") or ()
        if name in present:
            yield from (
                f"{name} is ready, and has the taint {one['key']}" for one in taints if one["key"] in _LEFT_BEHIND
            )


def _unfinished_pods(cluster: SimulatedCluster, present: set[str]) -> Iterator[str]:
    for pod in cluster.list_objects(PODS):
        name, node = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}", pod["spec"].get("nodeName")
        phase = (pod.get("status") or {}).get("phase", "Pending")
        if node and node not in present:
            continue
        if pod["metadata"].get("deletionTimestamp"):
            yield f"pod {name} is Terminating on {node or 'no node'}"
        elif phase == "Pending" and not _has_reason(pod):
            yield f"pod {name} is Pending on {node or 'no node'}, and does not say why"
        elif phase == "Running" and condition_status(pod, "Ready") != "True":
            yield f"pod {name} runs on {node}, and is not ready"


def _has_reason(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "PodScheduled" and one["status"] == "False" and one.get("message") for one in conditions)


def _unfinished_workloads(cluster: SimulatedCluster, present: set[str]) -> Iterator[str]:
    """Those whose pods are not even there; of pods that are, each one is told of.

    What a controller says of them counts only if it is so.
    """
    pods = [pod for pod in cluster.list_objects(PODS) if (pod.get("status") or {}).get("phase") not in FINISHED]
    for kind, wanted_of, ready in _READY:
        for one in cluster.list_objects(kind):
            own = [pod for pod in pods if _owns_pod(one, pod)]
            said = (one.get("status") or {}).get(ready, 0)
            wanted, found = wanted_of(one), min(said, sum(condition_status(pod, "Ready") == "True" for pod in own))
            if found < wanted and not any(_is_waiting(pod, present) for pod in own):
                yield f"{kind.plural} {_object_name(one)}: {found} of {wanted} pods are ready, and none says why"


def _owns_pod(workload: Object, pod: Object) -> bool:
    wanted = workload["spec"]["selector"].get("matchLabels") or {}
    labels = pod["metadata"].get("labels") or {}
    same = pod["metadata"].get("namespace") == workload["metadata"].get("namespace")
    return same and all(labels.get(name) == value for name, value in wanted.items())


def _is_waiting(pod: Object, present: set[str]) -> bool:
    """For a machine that is not there, or for a reason that it says."""
    node = pod["spec"].get("nodeName")
    return (bool(node) and node not in present) or _has_reason(pod)


def _unfinished_jobs(cluster: SimulatedCluster) -> Iterator[str]:
    """Those that are not over, and at which nothing works; one may wait for a time that a clock has made up."""
    for one in cluster.list_objects(JOBS):
        idle = not (one.get("status") or {}).get("active") and not one["spec"].get("suspend")
        over = "True" in (condition_status(one, "Complete"), condition_status(one, "Failed"))
        if idle and not over and not _is_in_backoff(cluster, one):
            yield f"job {_object_name(one)} is not over, and has no pod that works"


def _is_in_backoff(cluster: SimulatedCluster, job: Object) -> bool:
    """Kubernetes waits after a failure, from its time by the machine's clock on, which may have been ahead."""
    now = cluster.clock.wall()
    for pod in cluster.list_objects(PODS):
        owners, host = pod["metadata"].get("ownerReferences") or (), cluster.hosts.get(pod["spec"].get("nodeName", ""))
        if host and any(one["uid"] == job["metadata"]["uid"] for one in owners):
            failed = (pod.get("status") or {}).get("phase") == "Failed"
            if failed and now < ended_at(pod) <= now + host.clock.furthest:
                return True
    return False


def _object_name(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _leftover_attachments(cluster: SimulatedCluster, present: set[str]) -> Iterator[str]:
    for one in cluster.list_objects(ATTACHMENTS):
        if one["metadata"].get("deletionTimestamp") and one["spec"]["nodeName"] in present:
            yield f"volume attachment {one['metadata']['name']} is not detached from {one['spec']['nodeName']}"
