"""Deletes finished Jobs after ``ttlSecondsAfterFinished`` (``k8s.io/kubernetes/pkg/controller/ttlafterfinished``)."""

from collections.abc import Iterable, Sequence

from lastcall_lab.controllers.framework.actions import Decision, DeleteObject
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of
from lastcall_lab.controllers.objects import conditions, pods
from lastcall_lab.controllers.workloads import jobs
from lastcall_lab.controllers.workloads.job_pods import is_finished


class TTLAfterFinishedController:
    """Reconciles Jobs."""

    name = "ttl-after-finished"
    resources: Sequence[str] = (jobs.RESOURCE,)

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The Job."""
        return [ref_of(jobs.RESOURCE, obj)]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Deletes the Job with its pods once its TTL has passed."""
        job = view.get(*key)
        seconds = job["spec"].get("ttlSecondsAfterFinished") if job else None
        if job is None or seconds is None or not is_finished(job) or job["metadata"].get("deletionTimestamp"):
            return Decision()
        left = _finish_time(job) + seconds - now
        if left > 0:
            return Decision(again_in=left)
        return Decision((DeleteObject(key, uid=job["metadata"]["uid"], propagation="Foreground"),))


def _finish_time(job: Object) -> float:
    said = job["status"]["conditions"]
    last = next(one for one in ("Complete", "Failed") if conditions.is_condition_true(said, one))
    return pods.unix_seconds(conditions.find_condition(said, last)["lastTransitionTime"])
