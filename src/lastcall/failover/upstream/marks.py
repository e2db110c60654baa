"""What a pod's status is made to say before the pod is deleted for its node (pure): as Kubernetes 1.36 writes it.

Others read it: who waits for a volume sees from the phase that the pod needs it no more, and a Job's failure policy goes by
the condition DisruptionTarget.
"""

from typing import NamedTuple

from lastcall.failover.upstream.verdict import FINISHED, Removal


class Disruption(NamedTuple):
    """Reason and message of the condition DisruptionTarget, whose status is True."""

    reason: str
    message: str


ORPHANED = Disruption("DeletionByPodGC", "PodGC: node no longer exists")
EVICTED = Disruption("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
"""Of a pod that is deleted for a taint; its phase stays as it is (``addConditionAndDeletePod``)."""


class Mark(NamedTuple):
    """What is written in one patch; no condition if ``disruption`` is None."""

    phase: str
    disruption: Disruption | None


def mark(phase: str, why: Removal) -> Mark | None:
    """Of a pod that is removed by force (``markFailedAndDeletePodWithCondition``); None for one that has finished."""
    if phase in FINISHED:
        return None
    return Mark("Failed", ORPHANED if why is Removal.ORPHANED else None)
