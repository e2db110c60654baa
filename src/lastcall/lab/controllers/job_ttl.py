"""Jobs that are over go after ``ttlSecondsAfterFinished`` (``k8s.io/kubernetes/pkg/controller/ttlafterfinished``)."""

from collections.abc import Iterable, Sequence

from lastcall.lab.controllers import conditions, jobs, pods
from lastcall.lab.controllers.actions import Decision, Delete
from lastcall.lab.controllers.job_pods import finished
from lastcall.lab.controllers.view import Object, Ref, View, ref


class FinishedJobs:
    """Looks at Jobs."""

    name = "ttl-after-finished"
    resources: Sequence[str] = (jobs.RESOURCE,)

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The Job."""
        return [ref(jobs.RESOURCE, obj)]

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """Deletes it, with its pods, when its time is up."""
        job = view.get(*key)
        seconds = job["spec"].get("ttlSecondsAfterFinished") if job else None
        if job is None or seconds is None or not finished(job) or job["metadata"].get("deletionTimestamp"):
            return Decision()
        left = _ended(job) + seconds - now
        if left > 0:
            return Decision(again_in=left)
        return Decision((Delete(key, uid=job["metadata"]["uid"], propagation="Foreground"),))


def _ended(job: Object) -> float:
    said = job["status"]["conditions"]
    last = next(one for one in ("Complete", "Failed") if conditions.holds(said, one))
    return pods.seconds(conditions.find(said, last)["lastTransitionTime"])
