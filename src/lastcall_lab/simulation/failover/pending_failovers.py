"""Failovers that the controller has not completed and for which it reports no reason to wait."""

from collections.abc import Iterator, Sequence

from lastcall.adapters.kube.resources import NODES
from lastcall.model.observed import MARK
from lastcall.names import OUT_OF_SERVICE
from lastcall_lab.simulation.cluster import SimulatedCluster, condition_status


def describe_pending(cluster: SimulatedCluster) -> Sequence[str]:
    """Sentences; none if there is no controller."""
    return list(_pending_failovers(cluster))


def _pending_failovers(cluster: SimulatedCluster) -> Iterator[str]:
    replicas = cluster.failing_over.replicas
    if replicas is None:
        return
    yield from (one.fault for one in replicas.all if one.fault)
    awaited = replicas.awaited_by_node()
    for node in cluster.list_objects(NODES):
        name, marked = node["metadata"]["name"], MARK in (node["metadata"].get("annotations") or {})
        tainted = any(one["key"] == OUT_OF_SERVICE for one in node["spec"].get("taints") or ())
        if (marked or tainted) and condition_status(node, "Ready") == "True":
            yield f"{name} is ready, and bears lastcall's {'mark' if marked else 'taint'}"
        elif marked and replicas.has_leader and name not in awaited:
            yield f"{name} is failed over, and lastcall does not say what it waits for"
