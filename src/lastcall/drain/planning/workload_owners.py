"""The workloads that make the pods of a drain again, and how many pods each has (pure)."""

from collections import Counter
from collections.abc import Iterator, Sequence

from lastcall.drain.planning.pod_filters import controller_of
from lastcall.model.drain_facts import DrainPod
from lastcall.model.drain_objects import DrainFacts, OwnerPlace
from lastcall.model.surge_facts import SurgeableWorkload

_MADE_ONCE = ("DaemonSet", "Job", "Node")
"""Controllers whose pods are not replicas of each other."""


def find_workload(pod: DrainPod, facts: DrainFacts) -> SurgeableWorkload | None:
    """The topmost workload that is known: of a pod of a ReplicaSet its Deployment. None if none is known."""
    found: list[SurgeableWorkload] = []
    owner = controller_of(pod)
    while owner:
        workload = facts.workloads.get((owner.kind, pod.metadata.namespace, owner.name))
        if workload is None or workload in found:
            break
        found.append(workload)
        owner = next((one for one in workload.metadata.owner_references or () if one.controller), None)
    return found[-1] if found else None


def find_singletons(pods: Sequence[DrainPod], facts: DrainFacts) -> Iterator[DrainPod]:
    """Pods whose controller has one replica: by its spec, else because no other pod has this controller."""
    counts = Counter(place for pod in facts.pods if not pod.is_finished and (place := _owner_place(pod)))
    for pod in pods:
        place = _owner_place(pod)
        if pod.is_finished or place is None or place[0] in _MADE_ONCE:
            continue
        workload = find_workload(pod, facts)
        if (workload.spec.replicas if workload else counts[place]) == 1:
            yield pod


def _owner_place(pod: DrainPod) -> OwnerPlace | None:
    owner = controller_of(pod)
    return (owner.kind, pod.metadata.namespace, owner.name) if owner else None
