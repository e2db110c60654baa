"""Which pods of a snapshot are removed by force (pure): one round of Pod GC."""

from collections.abc import Iterator
from datetime import datetime

from lastcall.failover.upstream import caution, verdict
from lastcall.failover.upstream.cluster import Cluster
from lastcall.failover.upstream.rules import Rules
from lastcall.failover.upstream.verdict import Removal
from lastcall.model.snapshot import Pod


def removed(cluster: Cluster, rules: Rules, now: datetime) -> Iterator[tuple[Pod, Removal]]:
    """Each pod once, by the rule that comes to it first: finished ones that are too many come before all others."""
    doomed = {pod.key for pod in _surplus(cluster, rules)}
    for pod in cluster.snapshot.pods:
        why = Removal.TERMINATED if pod.key in doomed else _removal(cluster, pod, rules, now)
        if why:
            yield pod, why


def refused(cluster: Cluster, pod: Pod, rules: Rules, now: datetime) -> str:
    """Why lastcall leaves a pod alone that upstream would remove, as the end of a sentence about the pod's node.

    Empty if upstream would not, or if nothing speaks against it. Pods that never had a node and finished ones need no
    proof that a node is dead.
    """
    why = _upstream(cluster, pod, missed=True)
    if why not in (Removal.OUT_OF_SERVICE, Removal.ORPHANED):
        return ""
    node = cluster.node_of(pod)
    objection = caution.objection(cluster, pod.spec.node_name, now)
    return caution.staying(pod, node, now, comparisons=rules.comparisons) if node and not objection else objection


def _surplus(cluster: Cluster, rules: Rules) -> list[Pod]:
    finished = [pod for pod in cluster.snapshot.pods if verdict.finished(pod.status.phase)]
    return verdict.surplus(finished, rules.finished, _age)


def _removal(cluster: Cluster, pod: Pod, rules: Rules, now: datetime) -> Removal | None:
    why = _upstream(cluster, pod, missed=rules.quarantine_elapsed)
    return None if why and not rules.upstream and refused(cluster, pod, rules, now) else why


def _upstream(cluster: Cluster, pod: Pod, *, missed: bool) -> Removal | None:
    name = pod.spec.node_name
    return verdict.removal(terminating=pod.terminating, bound=bool(name), node=cluster.state(name), missed=missed)


def _age(pod: Pod) -> verdict.Age:
    metadata, status = pod.metadata, pod.status
    created = metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else float("-inf")
    return verdict.age(
        phase=status.phase, reason=status.reason, created=created, name=metadata.name, namespace=metadata.namespace
    )
