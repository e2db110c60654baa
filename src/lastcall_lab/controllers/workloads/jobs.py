"""Jobs: run pods until enough have succeeded (``k8s.io/kubernetes/pkg/controller/job``)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.controllers.framework.actions import Action, Decision, status_patches
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, controller_of, ref_of
from lastcall_lab.controllers.objects import conditions, pods
from lastcall_lab.controllers.objects.ownership import (
    OwnerKind,
    affected_workloads,
    claim_objects,
    create_pod_action,
    delete_pod_actions,
)
from lastcall_lab.controllers.workloads import job_end_reasons, job_indexes
from lastcall_lab.controllers.workloads.job_end_reasons import JobEndReason
from lastcall_lab.controllers.workloads.job_failures import JobBackoff, ended_at, wait_after
from lastcall_lab.controllers.workloads.job_pods import (
    TRACKING,
    JobPods,
    failures_before,
    is_finished,
    is_tracked,
    release_patch,
    surplus_pods,
    taken_indexes,
)

RESOURCE = "jobs.batch"
KIND = OwnerKind("batch/v1", "Job", RESOURCE)
BURST = 500
"""The maximum number of pods created or deleted at once."""
_OURS = (None, "kubernetes.io/job-controller")
_STAMP = "lastProbeTime"


@dataclass(frozen=True)
class JobTimes:
    """Backoff in seconds before a failed pod is replaced: initial, doubled each time, and maximum."""

    first_backoff: float = 10.0
    longest_backoff: float = 600.0


class JobController:
    """Reconciles a Job when it or one of its pods changes, and pods whose Job is gone.

    Like Kubernetes, it remembers in memory how many pods of a Job failed and when. A restart loses this, and the next
    pod comes sooner.
    """

    name = "job"
    resources: Sequence[str] = (RESOURCE, "pods")

    def __init__(self, times: JobTimes | None = None) -> None:
        self._times = times or JobTimes()
        self._backoffs: dict[str, JobBackoff] = {}
        self._heard: dict[str, set[str]] = {}
        """Pods whose end the backoff of their Job includes."""

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The Job; the pod itself if its Job does not exist."""
        if resource == RESOURCE:
            left = view.dependents(obj["metadata"]["uid"])
            return [ref_of(RESOURCE, obj), *(place for place, pod in left if _is_orphan_pod(place, pod, view))]
        place = ref_of("pods", obj)
        return [*affected_workloads(obj, KIND, view), *([place] if _is_orphan_pod(place, obj, view) else ())]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Pods to create, delete, or count, and the status."""
        obj = view.get(*key)
        if key.resource == "pods":
            return Decision((release_patch(obj),)) if obj and _is_orphan_pod(key, obj, view) else Decision()
        if obj is None or is_finished(obj):
            self._drop_finished(view)
            return Decision()
        if obj["spec"].get("managedBy") not in _OURS:
            return Decision()
        own, patches = claim_objects(obj, KIND, "pods", view, finalizer=TRACKING)
        if patches:
            return Decision(tuple(patches))
        known = JobPods(obj, own)
        return _JobSync(known, self._update_backoff(known), self._times, now).make_decision(key)

    def _update_backoff(self, known: JobPods) -> JobBackoff:
        """Adds pods whose end is observed for the first time."""
        job = known.job["metadata"]["uid"]
        heard, before = self._heard.setdefault(job, set()), self._backoffs.get(job, JobBackoff())
        new = {
            failed: [pod for pod in known.unnoted_pods(failed=failed) if _uid_of(pod) not in heard]
            for failed in (False, True)
        }
        heard.update(_uid_of(pod) for pods_ in new.values() for pod in pods_)
        times = {failed: [ended_at(pod) for pod in pods_] for failed, pods_ in new.items()}
        after = self._backoffs[job] = before.with_ended_pods(times[False], times[True])
        return after

    def _drop_finished(self, view: View) -> None:
        """Drops deleted and finished Jobs."""
        alive = {_uid_of(job) for job in view.all(RESOURCE) if not is_finished(job)}
        for uid in self._heard.keys() - alive:
            del self._heard[uid], self._backoffs[uid]


def _is_orphan_pod(place: ObjectRef, pod: Object, view: View) -> bool:
    """Whether no Job will count the pod any more (``syncOrphanPod``)."""
    if place.resource != "pods" or not is_tracked(pod):
        return False
    owner = controller_of(pod)
    if owner is None:
        return True
    if (owner["apiVersion"], owner["kind"]) != (KIND.api_version, KIND.kind):
        return False
    job = view.get(RESOURCE, pod["metadata"]["namespace"], owner["name"])
    return job is None or job["metadata"]["uid"] != owner["uid"] or is_finished(job)


def _uid_of(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def _released_pods(known: JobPods) -> list[Object]:
    """Pods that lost the finalizer so that they can be deleted without being counted."""
    return [pod for pod in known.active if not is_tracked(pod)]


class _JobSync:
    """One sync of a Job."""

    def __init__(self, known: JobPods, backoff: JobBackoff, times: JobTimes, now: float) -> None:
        self._known, self._backoff, self._times, self._now = known, backoff, times, now
        self._job, self._spec = known.job, known.spec
        self._again: list[float] = []
        self._told: list[Action] = []
        self._conditions: conditions.Conditions = known.status.get("conditions") or ()
        self._start: str | None = known.status.get("startTime")

    def make_decision(self, key: ObjectRef) -> Decision:
        """Writes the status first; pods lose their finalizers only once it is visible."""
        if not self._start and not self._is_suspended:
            self._start = timestamp(self._now)
        left = job_end_reasons.seconds_left(self._known, self._start, self._now)
        why, steps, dismissed = job_end_reasons.job_end_reason(self._known, left=left), [], []
        if left is not None and left > 0:
            self._again.append(left)
        if why:
            dismissed = self._known.active
            steps = list(self._delete_pods(dismissed))
        elif not self._job["metadata"].get("deletionTimestamp"):
            steps = list(self._manage_pods())
            why = None if steps else job_end_reasons.completion_reason(self._known)
            if not why:
                self._update_suspension()
        status = self._next_status(why, dismissed)
        released = self._known.release_patches(why.target if why else "")
        actions = (*status_patches(key, self._job, status), *self._told, *released, *steps)
        return Decision(actions, min(self._again, default=None))

    # -- pods ----------------------------------------------------------------------------------------------------------

    @property
    def _is_suspended(self) -> bool:
        return bool(self._spec.get("suspend"))

    def _manage_pods(self) -> Iterator[Action]:
        """Runs as many pods as wanted now (``manageJob``)."""
        known, running = self._known, len(self._known.active)
        wanted = 0 if self._is_suspended else self._desired_pods(running)
        gone = (_released_pods(known) or surplus_pods(known, max(0, running - wanted)))[:BURST]
        if gone or self._is_suspended:
            yield from self._release_pods(gone)
            return
        ending = len(known.ending) if known.replaces_when_gone else 0
        missing = min(wanted - running - ending, BURST)
        if missing <= 0:
            return
        if not known.by_index and (left := self._backoff_seconds()):
            self._again.append(left)
            return
        yield from self._create_pods(missing)

    def _desired_pods(self, running: int) -> int:
        parallelism, completions = self._spec.get("parallelism", 1), self._spec.get("completions")
        if completions is None:
            return int(running if self._known.success_count else parallelism)
        return int(max(0, min(completions - self._known.success_count, parallelism)))

    def _backoff_seconds(self) -> float:
        times, (failures, last) = self._times, self._backoff
        return wait_after(failures, last, self._now, first=times.first_backoff, longest=times.longest_backoff)

    def _create_pods(self, missing: int) -> Iterator[Action]:
        indexes: Sequence[int | None] = [None] * missing
        if self._known.indexed:
            indexes = self._due_indexes(
                job_indexes.pending_indexes(self._known.completions, taken_indexes(self._known), missing)
            )
        for index in indexes:
            yield create_pod_action(self._new_job_pod(index), self._job, KIND)

    def _due_indexes(self, indexes: Sequence[int]) -> Sequence[int]:
        """The indexes whose own backoff has passed."""
        if not self._known.by_index:
            return indexes
        waits = {index: self._index_backoff_seconds(index) for index in indexes}
        due = [index for index, left in waits.items() if not left]
        self._again += [] if due else list(waits.values())
        return due

    def _index_backoff_seconds(self, index: int) -> float:
        last = self._known.last_failed_pods.get(index)
        if last is None:
            return 0.0
        count, times = job_indexes.index_failure_count(last, ignored=True) + 1, self._times
        return wait_after(count, ended_at(last), self._now, first=times.first_backoff, longest=times.longest_backoff)

    def _new_job_pod(self, index: int | None) -> Object:
        pod = pods.pod_from_template(self._spec["template"], self._job, KIND.api_version, KIND.kind)
        pod["metadata"]["finalizers"] = sorted({*pod["metadata"]["finalizers"], TRACKING})
        if index is not None:
            before = failures_before(self._known, index) if self._known.by_index else None
            job_indexes.mark_index(pod, self._job["metadata"]["name"], index, before)
        return pod

    def _release_pods(self, gone: Sequence[Object]) -> Iterator[Action]:
        """Removes the finalizer of pods that do not count, and deletes them once that is visible."""
        if counted := [pod for pod in gone if is_tracked(pod)]:
            yield from map(release_patch, counted)
        else:
            yield from self._delete_pods(gone)

    def _delete_pods(self, gone: Iterable[Object]) -> Iterator[Action]:
        for pod in gone:
            yield from delete_pod_actions(pod, self._job, KIND)

    # -- status --------------------------------------------------------------------------------------------------------

    def _update_suspension(self) -> None:
        """A suspended Job has no start time; its deadline restarts at resume."""
        was = conditions.find_condition(self._conditions, "Suspended")
        if self._is_suspended and was.get("status") != "True":
            self._set_job_condition("Suspended", "JobSuspended", "Job suspended")
            self._told.append(KIND.owner_event(self._job, "Suspended", "Job suspended"))
            self._start = None
        elif not self._is_suspended and was.get("status") == "True":
            self._set_job_condition("Suspended", "JobResumed", "Job resumed", status="False")
            self._told.append(KIND.owner_event(self._job, "Resumed", "Job resumed"))
            self._start = timestamp(self._now)

    def _set_job_condition(self, kind: str, reason: str, message: str, *, status: str = "True") -> None:
        made = conditions.new_condition(kind, status, reason, message, now=self._now, stamp=_STAMP)
        others = [one for one in self._conditions if one["type"] != kind]
        self._conditions = [*others, made]

    def _next_status(self, why: JobEndReason | None, dismissed: Sequence[Object]) -> Object:
        known = self._known
        status = {
            **known.status_with_counts(why.target if why else ""),
            "active": len(known.active) - len(dismissed),
            "ready": 0 if dismissed else sum(map(pods.is_ready, known.active)),
            "terminating": len(known.ending) + len(dismissed),
        }
        if self._start:
            status["startTime"] = self._start
        if why:
            self._finish_job(why, status)
        if self._conditions:
            status["conditions"] = list(self._conditions)
        kept = ("ready", "terminating", "uncountedTerminatedPods", "failedIndexes")
        return {name: value for name, value in status.items() if value or name in kept}

    def _finish_job(self, why: JobEndReason, status: Object) -> None:
        """Sets the first condition at once, the final one when no pod runs and all are counted."""
        if not conditions.is_condition_true(self._conditions, why.target):
            self._set_job_condition(why.target, why.reason, why.message)
        if self._known.tracked or any(status[name] for name in ("uncountedTerminatedPods", "active", "terminating")):
            return
        complete = why.target == job_end_reasons.MET
        self._set_job_condition("Complete" if complete else "Failed", why.reason, why.message)
        if complete:
            status["completionTime"] = timestamp(self._now)
            self._told.append(KIND.owner_event(self._job, "Completed", "Job completed"))
        else:
            self._told.append(KIND.owner_event(self._job, why.reason, why.message, "Warning"))
