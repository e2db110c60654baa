"""Actions of administrators: drain a node, taint a node as out of service."""

from lastcall.adapters.kube.client import MERGE
from lastcall.adapters.kube.resources import NODES, PODS, Object
from lastcall.errors import LastcallError, NotFound, TooManyRequests
from lastcall.report.formatting import abbreviate_names
from lastcall_lab.simulation.actions.base import wait_for_end
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.recorded_cluster.workloads import is_static
from lastcall_lab.simulation.scenario import ScenarioEvent

EVICTION_PAUSE = 5.0
"""Between two attempts to evict a pod that its budget protects (``kubectl drain``)."""

_LOOK = 1.0
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


async def drain_node(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """``kubectl drain --ignore-daemonsets --delete-emptydir-data``; uncordoned when its time is over.

    As there only the pods that are found at the beginning are evicted.
    """
    await _set_cordon(cluster, name, cordoned=True)
    told: set[str] = set()
    found = {pod["metadata"]["uid"] for pod in _evictable_pods(cluster, name)}
    while pods := [pod for pod in _evictable_pods(cluster, name) if pod["metadata"]["uid"] in found]:
        asked = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        refused = [pod["metadata"]["name"] for pod in asked if await _evict_pod(cluster, pod)]
        if new := [pod for pod in refused if pod not in told]:
            told.update(new)
            cluster.truth.record_notice(name, f"{abbreviate_names(new)} may not be evicted yet, and the drain waits")
        await cluster.clock.sleep(EVICTION_PAUSE if refused else _LOOK)
    cluster.truth.record_notice(name, "drained")
    if await wait_for_end(cluster, event):
        await _set_cordon(cluster, name, cordoned=False)


async def cordon_node(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """``kubectl cordon``; ``kubectl uncordon`` when its time is over."""
    await _set_cordon(cluster, name, cordoned=True)
    if await wait_for_end(cluster, event):
        await _set_cordon(cluster, name, cordoned=False)


async def uncordon_node(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """``kubectl uncordon``."""
    await _set_cordon(cluster, name, cordoned=False)


async def taint_out_of_service(cluster: SimulatedCluster, event: ScenarioEvent, name: str) -> None:
    """By hand, as the documentation of Kubernetes says; taken away when its time is over."""
    await _set_taint(cluster, name, present=True)
    if await wait_for_end(cluster, event):
        await _set_taint(cluster, name, present=False)


async def _set_cordon(cluster: SimulatedCluster, name: str, *, cordoned: bool) -> None:
    """As kubectl, which does nothing if the node is so already: nobody can know then that somebody wanted it."""
    node = await cluster.plane.admin.get(NODES, name)
    if bool(node["spec"].get("unschedulable")) == cordoned:
        return
    cluster.truth.record_cordon(name, cordoned=cordoned)
    await cluster.plane.admin.patch(NODES, name, {"spec": {"unschedulable": cordoned or None}}, kind=MERGE)


async def _set_taint(cluster: SimulatedCluster, name: str, *, present: bool) -> None:
    node = await cluster.plane.admin.get(NODES, name)
    others = [one for one in node["spec"].get("taints") or () if one["key"] != OUT_OF_SERVICE["key"]]
    body = {
        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
        "spec": {"taints": [*others, *([OUT_OF_SERVICE] if present else [])]},
    }
    await cluster.plane.admin.patch(NODES, name, body, kind=MERGE)


def _evictable_pods(cluster: SimulatedCluster, name: str) -> list[Object]:
    """All but those of DaemonSets, and those that a kubelet has from files."""
    pods = [pod for pod in cluster.list_objects(PODS) if pod["spec"].get("nodeName") == name]
    return [
        pod
        for pod in pods
        if not is_static(pod) and not any(map(_is_daemon_set, pod["metadata"].get("ownerReferences") or ()))
    ]


def _is_daemon_set(owner: Object) -> bool:
    return bool(owner["kind"] == "DaemonSet")


async def _evict_pod(cluster: SimulatedCluster, pod: Object) -> bool:
    """Whether its budget refuses that."""
    metadata = pod["metadata"]
    body = {"metadata": {"name": metadata["name"], "namespace": metadata["namespace"]}}
    try:
        await cluster.plane.admin.create_subresource(
            PODS, metadata["name"], "eviction", body, namespace=metadata["namespace"]
        )
    except TooManyRequests:
        return True
    except NotFound:
        return False
    except LastcallError:
        return True
    return False
