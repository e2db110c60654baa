"""What the failover controller has not brought to its end, and does not say what it waits for."""

from collections.abc import Iterator, Sequence

from lastcall.adapters.kube.resources import NODES
from lastcall.lab.simulation.cluster import Cluster, condition
from lastcall.model.observed import MARK
from lastcall.names import OUT_OF_SERVICE


def left(cluster: Cluster) -> Sequence[str]:
    """Sentences; none if there is no controller."""
    return list(_left(cluster))


def _left(cluster: Cluster) -> Iterator[str]:
    replicas = cluster.failing_over.replicas
    if replicas is None:
        return
    yield from (one.fault for one in replicas.all if one.fault)
    awaited = replicas.awaited()
    for node in cluster.all(NODES):
        name, marked = node["metadata"]["name"], MARK in (node["metadata"].get("annotations") or {})
        tainted = any(one["key"] == OUT_OF_SERVICE for one in node["spec"].get("taints") or ())
        if (marked or tainted) and condition(node, "Ready") == "True":
            yield f"{name} is ready, and bears lastcall's {'mark' if marked else 'taint'}"
        elif marked and replicas.lead and name not in awaited:
            yield f"{name} is failed over, and lastcall does not say what it waits for"
