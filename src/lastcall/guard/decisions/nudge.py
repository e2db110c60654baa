"""Whether the guard itself carries out the deletion of a pod that has become ready (pure).

A controller whose DELETE was refused asks again after up to 1,000 s (client-go's backoff of work queues). It is spared
that wait if its workload still wants the pod to go. What a person has asked for, and an eviction, is never carried out
later: its requester may have gone away, and its budget may say no.
"""

import re

from lastcall.guard.decisions.owners import list_owners
from lastcall.guard.decisions.requesters import is_workload_controller
from lastcall.model.guard_facts import GuardFacts, WorkloadOwner
from lastcall.model.guard_policy import HeldPod, RequestedRemoval
from lastcall.model.pods import Pod

REVISION_LABEL = "controller-revision-hash"
"""On a StatefulSet's pod: the ControllerRevision that it was made from."""

_ORDINAL = re.compile(r"-([0-9]+)$", re.ASCII)


def is_nudge_wanted(held: HeldPod, pod: Pod, facts: GuardFacts) -> bool:
    """Whether a controller asked for the deletion, and its workload still wants it."""
    if held.request is not RequestedRemoval.DELETE or not is_workload_controller(held.requested_by):
        return False
    owners = list_owners(pod, facts).owners
    if not owners or pod.metadata.deletion_timestamp is not None:
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
