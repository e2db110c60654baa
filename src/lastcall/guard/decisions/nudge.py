"""Whether the guard itself carries out the deletion of a pod that has become ready (pure).

A controller whose DELETE was refused asks again after up to 1,000 s (client-go's backoff of work queues). It is spared
that wait if its workload still wants the pod to go. Taint eviction asks five times within 50 ms and never again; its wish is
the node's taint, and holds as long as that applies to the pod. What a person has asked for, and an eviction, is never carried
out later: its requester may have gone away, and its budget may say no.
"""

import re
from datetime import datetime

from lastcall.guard.decisions.owners import list_owners
from lastcall.guard.decisions.requesters import is_taint_eviction, is_workload_controller
from lastcall.model.guard_facts import GuardedTaint, GuardFacts, PodTaints, WorkloadOwner
from lastcall.model.guard_policy import HeldPod, RequestedRemoval
from lastcall.model.pods import Pod
from lastcall.model.tolerations import FOR_EVER, seconds_tolerated

REVISION_LABEL = "controller-revision-hash"
"""On a StatefulSet's pod: the ControllerRevision that it was made from."""

_ORDINAL = re.compile(r"-([0-9]+)$", re.ASCII)


def is_nudge_wanted(held: HeldPod, pod: Pod, facts: GuardFacts) -> bool:
    """Whether a controller asked for the deletion, and its workload still wants it.

    For taint eviction ``is_evicted_by_taint`` has to be asked too, with what is read at that moment.
    """
    if held.request is not RequestedRemoval.DELETE or pod.metadata.deletion_timestamp is not None:
        return False
    if is_taint_eviction(held.requested_by):
        return True
    owners = list_owners(pod, facts).owners
    if not owners or not is_workload_controller(held.requested_by):
        return False
    owner = owners[0]
    if owner.metadata.deletion_timestamp is not None:
        return False
    match owner.kind:
        case "StatefulSet":
            return _is_unwanted_by_stateful_set(pod, owner)
        case "ReplicaSet":
            return _has_too_many_pods(owner)
        case _:
            return False


def is_evicted_by_taint(found: PodTaints, now: datetime) -> bool:
    """Whether a taint of its node still evicts the pod. The time for which it is tolerated counts from ``timeAdded``."""
    return any(_is_time_over(taint, seconds_tolerated([taint], found.tolerations), now) for taint in found.taints)


def _is_time_over(taint: GuardedTaint, seconds: float, now: datetime) -> bool:
    """A taint of unknown age has begun now."""
    if seconds == FOR_EVER:
        return False
    age = (now - taint.time_added).total_seconds() if taint.time_added else 0.0
    return age >= seconds


def _is_unwanted_by_stateful_set(pod: Pod, owner: WorkloadOwner) -> bool:
    """Of another revision than the one that the set updates to, or beyond the number of its replicas."""
    revision = (pod.metadata.labels or {}).get(REVISION_LABEL, "")
    wanted = owner.status.update_revision if owner.status else ""
    if revision and wanted and revision != wanted:
        return True
    ordinal = _ORDINAL.search(pod.metadata.name)
    if ordinal is None or owner.spec is None or owner.spec.replicas is None:
        return False
    start = owner.spec.ordinals.start if owner.spec.ordinals else 0
    return not start <= int(ordinal[1]) < start + owner.spec.replicas


def _has_too_many_pods(owner: WorkloadOwner) -> bool:
    replicas = owner.spec.replicas if owner.spec else None
    return replicas is not None and owner.status is not None and owner.status.replicas > replicas
