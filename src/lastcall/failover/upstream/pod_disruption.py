"""What a pod's status is made to say before the pod is deleted for its node (pure): as Kubernetes 1.36 writes it.

Others read it: who waits for a volume sees from the phase that the pod needs it no more, and a Job's failure policy goes by
the condition DisruptionTarget.
"""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from lastcall.failover.upstream.controller_manager_rules import FINISHED, RemovalReason
from lastcall.model.observed import FailoverPod


class Disruption(NamedTuple):
    """Reason and message of the condition DisruptionTarget, whose status is True."""

    reason: str
    message: str


ORPHANED = Disruption("DeletionByPodGC", "PodGC: node no longer exists")
EVICTED = Disruption("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
"""Of a pod that is deleted for a taint; its phase stays as it is (``addConditionAndDeletePod``)."""


class PodFailurePatch(NamedTuple):
    """What is written in one patch; no condition if ``disruption`` is None."""

    phase: str
    disruption: Disruption | None


def pod_failure_patch(phase: str, why: RemovalReason) -> PodFailurePatch | None:
    """Of a pod that is removed by force (``markFailedAndDeletePodWithCondition``); None for one that has finished."""
    if phase in FINISHED:
        return None
    return PodFailurePatch("Failed", ORPHANED if why is RemovalReason.ORPHANED else None)


def disruption_condition(pod: FailoverPod, why: Disruption, wall: float) -> dict[str, Any] | None:
    """The condition that says why a pod is deleted, as it is patched; None if the pod is the target of a disruption already."""
    if any((one.type, one.status) == ("DisruptionTarget", "True") for one in pod.status.conditions):
        return None
    since = datetime.fromtimestamp(int(wall), UTC).isoformat().replace("+00:00", "Z")
    generation = pod.metadata.generation
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": why.reason,
        "message": why.message,
        "lastTransitionTime": since,
        **({"observedGeneration": generation} if generation else {}),
    }
