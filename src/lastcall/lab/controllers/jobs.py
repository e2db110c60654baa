"""Jobs: pods until enough of them have succeeded (``k8s.io/kubernetes/pkg/controller/job``)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lastcall.lab.apiserver.meta import timestamp
from lastcall.lab.controllers import conditions, job_ends, job_indexes, pods
from lastcall.lab.controllers.actions import Action, Decision, status_patch
from lastcall.lab.controllers.job_ends import Why
from lastcall.lab.controllers.job_failures import Backoff, ended_at, wait_after
from lastcall.lab.controllers.job_pods import (
    TRACKING,
    JobPods,
    failures_before,
    finished,
    release,
    surplus,
    taken,
    tracked,
)
from lastcall.lab.controllers.owning import Kind, claim, creation, deletion, interested
from lastcall.lab.controllers.view import Object, Ref, View, controller_of, ref

RESOURCE = "jobs.batch"
KIND = Kind("batch/v1", "Job", RESOURCE)
BURST = 500
"""Pods that are made or deleted at once, at most."""
_OURS = (None, "kubernetes.io/job-controller")
_STAMP = "lastProbeTime"


@dataclass(frozen=True)
class JobTimes:
    """Seconds before a pod that has failed is replaced: the first time, doubled each time, and at most."""

    first_backoff: float = 10.0
    longest_backoff: float = 600.0


class Jobs:
    """Looks at a Job when it or one of its pods has changed, and at pods whose Job has gone.

    It remembers how many pods of a Job have failed, and when, as Kubernetes does: with the process that is forgotten, and
    the next pod comes sooner.
    """

    name = "job"
    resources: Sequence[str] = (RESOURCE, "pods")

    def __init__(self, times: JobTimes | None = None) -> None:
        self._times = times or JobTimes()
        self._backoffs: dict[str, Backoff] = {}
        self._heard: dict[str, set[str]] = {}
        """The pods whose end is in a Job's backoff."""

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The Job; of a pod whose Job is not there, the pod."""
        if resource == RESOURCE:
            left = view.dependents(obj["metadata"]["uid"])
            return [ref(RESOURCE, obj), *(place for place, pod in left if _abandoned(place, pod, view))]
        place = ref("pods", obj)
        return [*interested(obj, KIND, view), *([place] if _abandoned(place, obj, view) else ())]

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """Pods to be made, deleted, or counted, and the status."""
        obj = view.get(*key)
        if key.resource == "pods":
            return Decision((release(obj),)) if obj and _abandoned(key, obj, view) else Decision()
        if obj is None or finished(obj):
            self._forget(view)
            return Decision()
        if obj["spec"].get("managedBy") not in _OURS:
            return Decision()
        own, patches = claim(obj, KIND, "pods", view, finalizer=TRACKING)
        if patches:
            return Decision(tuple(patches))
        known = JobPods(obj, own)
        return _Turn(known, self._backoff(known), self._times, now).decision(key)

    def _backoff(self, known: JobPods) -> Backoff:
        """With the pods whose end is seen for the first time."""
        job = known.job["metadata"]["uid"]
        heard, before = self._heard.setdefault(job, set()), self._backoffs.get(job, Backoff())
        new = {failed: [pod for pod in known.new(failed=failed) if _uid(pod) not in heard] for failed in (False, True)}
        heard.update(_uid(pod) for pods_ in new.values() for pod in pods_)
        times = {failed: [ended_at(pod) for pod in pods_] for failed, pods_ in new.items()}
        after = self._backoffs[job] = before.after(times[False], times[True])
        return after

    def _forget(self, view: View) -> None:
        """Jobs that are gone or over."""
        alive = {_uid(job) for job in view.all(RESOURCE) if not finished(job)}
        for uid in self._heard.keys() - alive:
            del self._heard[uid], self._backoffs[uid]


def _abandoned(place: Ref, pod: Object, view: View) -> bool:
    """Whether it is a pod that no Job will count any more (``syncOrphanPod``)."""
    if place.resource != "pods" or not tracked(pod):
        return False
    owner = controller_of(pod)
    if owner is None:
        return True
    if (owner["apiVersion"], owner["kind"]) != (KIND.api_version, KIND.kind):
        return False
    job = view.get(RESOURCE, pod["metadata"]["namespace"], owner["name"])
    return job is None or job["metadata"]["uid"] != owner["uid"] or finished(job)


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def _strays(known: JobPods) -> list[Object]:
    """Pods that have lost the finalizer so that they can be deleted without being counted."""
    return [pod for pod in known.active if not tracked(pod)]


class _Turn:
    """What is done about one Job now."""

    def __init__(self, known: JobPods, backoff: Backoff, times: JobTimes, now: float) -> None:
        self._known, self._backoff, self._times, self._now = known, backoff, times, now
        self._job, self._spec = known.job, known.spec
        self._again: list[float] = []
        self._told: list[Action] = []
        self._conditions: conditions.Conditions = known.status.get("conditions") or ()
        self._start: str | None = known.status.get("startTime")

    def decision(self, key: Ref) -> Decision:
        """The status first: pods lose their finalizers only when it is seen."""
        if not self._start and not self._suspended:
            self._start = timestamp(self._now)
        left = job_ends.seconds_left(self._known, self._start, self._now)
        why, steps, dismissed = job_ends.ends(self._known, left=left), [], []
        if left is not None and left > 0:
            self._again.append(left)
        if why:
            dismissed = self._known.active
            steps = list(self._ended(dismissed))
        elif not self._job["metadata"].get("deletionTimestamp"):
            steps = list(self._managed())
            why = None if steps else job_ends.reached(self._known)
            if not why:
                self._mind_suspension()
        status = self._status(why, dismissed)
        released = self._known.released(why.target if why else "")
        actions = (*status_patch(key, self._job, status), *self._told, *released, *steps)
        return Decision(actions, min(self._again, default=None))

    # -- its pods ------------------------------------------------------------------------------------------------------

    @property
    def _suspended(self) -> bool:
        return bool(self._spec.get("suspend"))

    def _managed(self) -> Iterator[Action]:
        """As many pods as should run now (``manageJob``)."""
        known, running = self._known, len(self._known.active)
        wanted = 0 if self._suspended else self._wanted(running)
        gone = (_strays(known) or surplus(known, max(0, running - wanted)))[:BURST]
        if gone or self._suspended:
            yield from self._dismissed(gone)
            return
        ending = len(known.ending) if known.waits_for_the_end else 0
        missing = min(wanted - running - ending, BURST)
        if missing <= 0:
            return
        if not known.by_index and (left := self._wait()):
            self._again.append(left)
            return
        yield from self._made(missing)

    def _wanted(self, running: int) -> int:
        parallelism, completions = self._spec.get("parallelism", 1), self._spec.get("completions")
        if completions is None:
            return int(running if self._known.succeeded else parallelism)
        return int(max(0, min(completions - self._known.succeeded, parallelism)))

    def _wait(self) -> float:
        times, (failures, last) = self._times, self._backoff
        return wait_after(failures, last, self._now, first=times.first_backoff, longest=times.longest_backoff)

    def _made(self, missing: int) -> Iterator[Action]:
        indexes: Sequence[int | None] = [None] * missing
        if self._known.indexed:
            indexes = self._due(job_indexes.pending(self._known.completions, taken(self._known), missing))
        for index in indexes:
            yield creation(self._pod(index), self._job, KIND)

    def _due(self, indexes: Sequence[int]) -> Sequence[int]:
        """Those that may be tried again now, where each index has its own backoff."""
        if not self._known.by_index:
            return indexes
        waits = {index: self._wait_of(index) for index in indexes}
        due = [index for index, left in waits.items() if not left]
        self._again += [] if due else list(waits.values())
        return due

    def _wait_of(self, index: int) -> float:
        last = self._known.last_failed.get(index)
        if last is None:
            return 0.0
        count, times = job_indexes.failures(last, ignored=True) + 1, self._times
        return wait_after(count, ended_at(last), self._now, first=times.first_backoff, longest=times.longest_backoff)

    def _pod(self, index: int | None) -> Object:
        pod = pods.from_template(self._spec["template"], self._job, KIND.api_version, KIND.kind)
        pod["metadata"]["finalizers"] = sorted({*pod["metadata"]["finalizers"], TRACKING})
        if index is not None:
            before = failures_before(self._known, index) if self._known.by_index else None
            job_indexes.mark(pod, self._job["metadata"]["name"], index, before)
        return pod

    def _dismissed(self, gone: Sequence[Object]) -> Iterator[Action]:
        """They are not counted: first they lose the finalizer, and when that is seen they are deleted."""
        if counted := [pod for pod in gone if tracked(pod)]:
            yield from map(release, counted)
        else:
            yield from self._ended(gone)

    def _ended(self, gone: Iterable[Object]) -> Iterator[Action]:
        for pod in gone:
            yield from deletion(pod, self._job, KIND)

    # -- its status ----------------------------------------------------------------------------------------------------

    def _mind_suspension(self) -> None:
        """A Job that is suspended has not begun; its deadline runs anew when it is resumed."""
        was = conditions.find(self._conditions, "Suspended")
        if self._suspended and was.get("status") != "True":
            self._set("Suspended", "JobSuspended", "Job suspended")
            self._told.append(KIND.tell(self._job, "Suspended", "Job suspended"))
            self._start = None
        elif not self._suspended and was.get("status") == "True":
            self._set("Suspended", "JobResumed", "Job resumed", status="False")
            self._told.append(KIND.tell(self._job, "Resumed", "Job resumed"))
            self._start = timestamp(self._now)

    def _set(self, kind: str, reason: str, message: str, *, status: str = "True") -> None:
        made = conditions.condition(kind, status, reason, message, now=self._now, stamp=_STAMP)
        others = [one for one in self._conditions if one["type"] != kind]
        self._conditions = [*others, made]

    def _status(self, why: Why | None, dismissed: Sequence[Object]) -> Object:
        known = self._known
        status = {
            **known.counted(why.target if why else ""),
            "active": len(known.active) - len(dismissed),
            "ready": 0 if dismissed else sum(map(pods.ready, known.active)),
            "terminating": len(known.ending) + len(dismissed),
        }
        if self._start:
            status["startTime"] = self._start
        if why:
            self._finish(why, status)
        if self._conditions:
            status["conditions"] = list(self._conditions)
        kept = ("ready", "terminating", "uncountedTerminatedPods", "failedIndexes")
        return {name: value for name, value in status.items() if value or name in kept}

    def _finish(self, why: Why, status: Object) -> None:
        """The first condition at once, the last one when nothing runs and everything is counted."""
        if not conditions.holds(self._conditions, why.target):
            self._set(why.target, why.reason, why.message)
        if self._known.tracked or any(status[name] for name in ("uncountedTerminatedPods", "active", "terminating")):
            return
        complete = why.target == job_ends.MET
        self._set("Complete" if complete else "Failed", why.reason, why.message)
        if complete:
            status["completionTime"] = timestamp(self._now)
            self._told.append(KIND.tell(self._job, "Completed", "Job completed"))
        else:
            self._told.append(KIND.tell(self._job, why.reason, why.message, "Warning"))
