"""What administrators do: drain a node, and say that one is out of service."""

from lastcall.adapters.kube.client import MERGE
from lastcall.adapters.kube.resources import NODES, PODS, Object
from lastcall.errors import LastcallError, NotFound, NotNow
from lastcall.lab.simulation.cluster import Cluster
from lastcall.lab.simulation.deeds.doing import over
from lastcall.lab.simulation.scenario import Event
from lastcall.lab.simulation.state.workloads import static
from lastcall.report.words import some

EVICTION_PAUSE = 5.0
"""Between two attempts to evict a pod that its budget protects (``kubectl drain``)."""

_LOOK = 1.0
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


async def drain(cluster: Cluster, event: Event, name: str) -> None:
    """``kubectl drain --ignore-daemonsets --delete-emptydir-data``; uncordoned when its time is over."""
    await _cordon(cluster, name, cordoned=True)
    told: set[str] = set()
    while pods := _to_evict(cluster, name):
        asked = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        refused = [pod["metadata"]["name"] for pod in asked if await _evict(cluster, pod)]
        if new := [pod for pod in refused if pod not in told]:
            told.update(new)
            cluster.truth.noticed(name, f"{some(new)} may not be evicted yet, and the drain waits")
        await cluster.clock.sleep(EVICTION_PAUSE if refused else _LOOK)
    cluster.truth.noticed(name, "drained")
    if await over(cluster, event):
        await _cordon(cluster, name, cordoned=False)


async def taint_out_of_service(cluster: Cluster, event: Event, name: str) -> None:
    """By hand, as the documentation of Kubernetes says; taken away when its time is over."""
    await _taint(cluster, name, present=True)
    if await over(cluster, event):
        await _taint(cluster, name, present=False)


async def _cordon(cluster: Cluster, name: str, *, cordoned: bool) -> None:
    await cluster.plane.admin.patch(NODES, name, {"spec": {"unschedulable": cordoned or None}}, kind=MERGE)


async def _taint(cluster: Cluster, name: str, *, present: bool) -> None:
    node = await cluster.plane.admin.get(NODES, name)
    others = [one for one in node["spec"].get("taints") or () if one["key"] != OUT_OF_SERVICE["key"]]
    body = {
        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
        "spec": {"taints": [*others, *([OUT_OF_SERVICE] if present else [])]},
    }
    await cluster.plane.admin.patch(NODES, name, body, kind=MERGE)


def _to_evict(cluster: Cluster, name: str) -> list[Object]:
    """All but those of DaemonSets, and those that a kubelet has from files."""
    pods = [pod for pod in cluster.all(PODS) if pod["spec"].get("nodeName") == name]
    return [
        pod for pod in pods if not static(pod) and not any(map(_daemon, pod["metadata"].get("ownerReferences") or ()))
    ]


def _daemon(owner: Object) -> bool:
    return bool(owner["kind"] == "DaemonSet")


async def _evict(cluster: Cluster, pod: Object) -> bool:
    """Whether its budget refuses that."""
    metadata = pod["metadata"]
    body = {"metadata": {"name": metadata["name"], "namespace": metadata["namespace"]}}
    try:
        await cluster.plane.admin.create_below(
            PODS, metadata["name"], "eviction", body, namespace=metadata["namespace"]
        )
    except NotNow:
        return True
    except NotFound:
        return False
    except LastcallError:
        return True
    return False
