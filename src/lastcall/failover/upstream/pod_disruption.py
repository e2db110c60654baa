"""The status that is written to a pod before it is deleted because of its node (pure), as Kubernetes 1.36 writes it.

Other components read it: the attach-detach controller sees from the phase that the pod no longer needs its volumes, and
a Job's pod failure policy matches the condition DisruptionTarget.
"""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from lastcall.failover.upstream.controller_manager_rules import FINISHED, RemovalReason
from lastcall.model.observed import FailoverPod


class Disruption(NamedTuple):
    """Reason and message of a DisruptionTarget condition with status True."""

    reason: str
    message: str


ORPHANED = Disruption("DeletionByPodGC", "PodGC: node no longer exists")
EVICTED = Disruption("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
"""For a pod that is deleted because of a taint; its phase is unchanged (``addConditionAndDeletePod``)."""


class PodFailurePatch(NamedTuple):
    """The content of one patch; no condition if ``disruption`` is None."""

    phase: str
    disruption: Disruption | None


def pod_failure_patch(phase: str, why: RemovalReason) -> PodFailurePatch | None:
    """The patch for a pod that is force-deleted (``markFailedAndDeletePodWithCondition``); None for a finished pod."""
    if phase in FINISHED:
        return None
    return PodFailurePatch("Failed", ORPHANED if why is RemovalReason.ORPHANED else None)


def disruption_condition(pod: FailoverPod, why: Disruption, wall: float) -> dict[str, Any] | None:
    """The condition to patch into a pod's status; None if DisruptionTarget is already True."""
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
