"""Which pods of the node are leftovers of a shutdown that is over (pure).

The kubelet's own graceful shutdown, and one beside a kubelet that cannot be stopped, leave ended pods behind: Failed
with the reason Terminated, rejected ones with the reason NodeShutdown, and Succeeded ones whose containers ended with
exit code 0. Their controllers ignore them and make others, and nobody deletes them.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum

from lastcall import names
from lastcall.graceful.cluster.pod_changes import controller_of
from lastcall.model.pods import Pod
from lastcall.model.shutdown import ShutdownMode, ShutdownRecord

JOB_TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer by which the Job controller counts each pod once (k8s.io/api/batch/v1: JobTrackingFinalizer)."""

_REPLACED_ELSEWHERE = ("ReplicaSet", "ReplicationController")
_REASONS = (names.TERMINATED_REASON, names.REFUSED_REASON)


class LeftoverFate(Enum):
    """What is done about a leftover."""

    KEPT = "Kept"
    DELETED = "Deleted"
    DELETED_WHEN_REPLACED = "DeletedWhenReplaced"
    DELETED_WHEN_COUNTED = "DeletedWhenCounted"


def find_leftovers(pods: Sequence[Pod], last: ShutdownRecord) -> list[tuple[Pod, LeftoverFate]]:
    """The leftovers of ``last`` that are to be deleted at some time, and what is waited for."""
    if last.mode is not ShutdownMode.ENFORCE:
        return []
    ended = {pod.uid for pod in last.pods if pod.outcome}
    fates = ((pod, _leftover_fate(pod)) for pod in pods if _is_leftover(pod, last, ended))
    return [(pod, fate) for pod, fate in fates if fate is not LeftoverFate.KEPT]


def _is_leftover(pod: Pod, last: ShutdownRecord, ended: set[str]) -> bool:
    """Whether the pod ended by that shutdown. The kubelet itself removes a pod whose deletion is under way."""
    if not pod.is_finished or pod.metadata.deletion_timestamp:
        return False
    if pod.status.reason in _REASONS:
        return pod.metadata.uid in ended or _changed_since(pod, last.wall)
    return pod.metadata.uid in ended


def _leftover_fate(pod: Pod) -> LeftoverFate:
    """By the pod's controller.

    A bare pod stays: nobody would make it again, and its end is for a person to see. StatefulSets and DaemonSets delete
    and replace their ended pods themselves. A Job's pod that has Succeeded is its result.
    """
    owner = controller_of(pod)
    if owner is None:
        return LeftoverFate.KEPT
    if owner.kind in _REPLACED_ELSEWHERE:
        return LeftoverFate.DELETED_WHEN_REPLACED
    if owner.kind == "Job" and pod.status.reason in _REASONS:
        counted = JOB_TRACKING not in (pod.metadata.finalizers or ())
        return LeftoverFate.DELETED if counted else LeftoverFate.DELETED_WHEN_COUNTED
    return LeftoverFate.KEPT


def _changed_since(pod: Pod, wall: float) -> bool:
    """Whether something of the pod is younger than ``wall`` (seconds since 1970), in whole seconds as the API has it."""
    times = [pod.metadata.creation_timestamp, *(one.last_transition_time for one in pod.status.conditions or ())]
    since = datetime.fromtimestamp(int(wall), UTC)
    return any(time and datetime.fromisoformat(time) >= since for time in times)
