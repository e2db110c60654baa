"""Whether a pod that is gone has been replaced (pure)."""

from lastcall.guard.decisions.owners import list_owners
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod
from lastcall.model.pods import Pod


def is_replaced(held: HeldPod, policy: GuardPolicy, facts: GuardFacts) -> bool:
    """Whether its workload has all its pods again, or wants no other in its place.

    A ready pod of the same name and another uid is the replacement; otherwise the workload has as many ready pods as it
    wants. The pod of a workload that is gone, or of none, is not replaced by anything.
    """
    successor = facts.find_pod(policy.metadata.namespace, held.name)
    if successor is not None and successor.metadata.uid != held.uid:
        return _is_ready(successor)
    if is_application_gone(held, facts):
        return True
    workload = facts.owners[held.workload_uid]
    wanted = workload.spec.replicas if workload.spec and workload.spec.replicas is not None else 1
    return sum(_is_ready(one) and _belongs_to(one, held.workload_uid, facts) for one in facts.pods) >= wanted


def is_application_gone(held: HeldPod, facts: GuardFacts) -> bool:
    """Whether no workload wants the pod, or another in its place: it is gone, is being deleted, or has no replicas."""
    workload = facts.owners.get(held.workload_uid)
    if workload is None or workload.metadata.deletion_timestamp is not None:
        return True
    return workload.spec is not None and workload.spec.replicas == 0


def _belongs_to(pod: Pod, workload_uid: str, facts: GuardFacts) -> bool:
    return any(owner.metadata.uid == workload_uid for owner in list_owners(pod, facts).owners)


def _is_ready(pod: Pod) -> bool:
    if pod.metadata.deletion_timestamp is not None:
        return False
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ())
