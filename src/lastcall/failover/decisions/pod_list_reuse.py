"""How long the list of a node's pods is good for (pure): the steps of one failover do not each list the same pods again.

What is listed live before the first step serves those that follow at once, as the answers to our own calls change it. After
pods were removed by force it serves the detaching of volumes alone: for all else the pods are listed anew, so that nothing ends
but by what the API server says of the whole node.
"""

from collections.abc import Mapping

from lastcall.failover.decisions import steps
from lastcall.model.observed import FailoverPod

LASTS = 15.0
"""Seconds after which a list is too old for the next step, however long the one before has taken.

That a pod of this UID is bound to the node, terminates or has finished does not change any more; that it is to stay may.
"""


def is_list_reusable(step: steps.Step, pods: Mapping[str, FailoverPod], *, listed: float, now: float) -> bool:
    """Whether what comes after ``step`` is decided by the same list. ``pods``, by UID, are as the answers have shown them.

    A pod whose deletion was answered by anything but itself, terminating, is not known any more; nor what is left if a pod
    was not removed by force as it was to be.
    """
    if now >= listed + LASTS:
        return False
    match step:
        case steps.Mark() | steps.Taint() | steps.Detach():
            return True
        case steps.Delete(pods=deleted):
            return all(pods[one.uid].is_terminating for one in deleted if one.uid in pods)
        case steps.ForceDelete(pods=removed):
            return not any(one.uid in pods for one in removed)
        case _:
            return False


def update_from_answer(pods: dict[str, FailoverPod], answer: FailoverPod | None) -> None:
    """``answer``: a pod as its deletion was answered. One that had finished, and that nothing keeps, has gone with it."""
    if answer is None:
        return
    metadata = answer.metadata
    if answer.is_terminating and metadata.deletion_grace_period_seconds == 0 and not metadata.finalizers:
        pods.pop(metadata.uid, None)
    else:
        pods[metadata.uid] = answer


def is_same_pod(now: FailoverPod, before: FailoverPod) -> bool:
    """Whether a pod, as it was just read, is that which was listed, on the same node, and terminating if it was so before."""
    same = now.metadata.uid == before.metadata.uid and now.spec.node_name == before.spec.node_name
    return same and (now.is_terminating or not before.is_terminating)
