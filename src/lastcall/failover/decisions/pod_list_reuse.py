"""How long a list of a node's pods stays valid (pure), so that each step of a failover need not list them again.

The live list before the first step serves the directly following ones, updated by the answers to our own calls. After
forced deletions it serves only the detach step; for everything else the pods are listed again, so that a failover ends
only by what the API server says about the whole node.
"""

from collections.abc import Mapping

from lastcall.failover.decisions import steps
from lastcall.model.observed import FailoverPod

LASTS = 15.0
"""Seconds after which a list is too old for the next step, however long the previous one took.

That a pod of this UID is bound to the node, terminating or finished cannot change any more; that it must stay can.
"""


def is_list_reusable(step: steps.Step, pods: Mapping[str, FailoverPod], *, listed: float, now: float) -> bool:
    """Whether the step after ``step`` uses the same list. ``pods``, by UID, are updated from the answers.

    A pod is unknown if the answer to its deletion was not the terminating pod itself. So are the remaining pods if one
    of them was not force-deleted as intended.
    """
    if now >= listed + LASTS:
        return False
    match step:
        case steps.Mark() | steps.TaintNode() | steps.Detach():
            return True
        case steps.Delete(pods=deleted):
            return all(pods[one.uid].is_terminating for one in deleted if one.uid in pods)
        case steps.ForceDelete(pods=removed):
            return not any(one.uid in pods for one in removed)
        case _:
            return False


def update_from_answer(pods: dict[str, FailoverPod], answer: FailoverPod | None) -> None:
    """Updates the list with the answer to a deletion. A finished pod without finalizers is removed by that deletion."""
    if answer is None:
        return
    metadata = answer.metadata
    if answer.is_terminating and metadata.deletion_grace_period_seconds == 0 and not metadata.finalizers:
        pods.pop(metadata.uid, None)
    else:
        pods[metadata.uid] = answer


def is_same_pod(now: FailoverPod, before: FailoverPod) -> bool:
    """Whether a pod just read is the listed one: same UID, same node, and still terminating if it was before."""
    same = now.metadata.uid == before.metadata.uid and now.spec.node_name == before.spec.node_name
    return same and (now.is_terminating or not before.is_terminating)
