"""The pods of a Job, classified so that none is counted twice (``job/job_controller.go``), pure.

An ended pod is first recorded in ``status.uncountedTerminatedPods``, then loses its finalizer, and is counted once both
are visible. This way no interruption makes a pod count twice or not at all (KEP-2307). Succeeded pods of an Indexed Job
are recorded by index instead.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from lastcall_lab.controllers.framework.actions import PatchObject
from lastcall_lab.controllers.framework.view import Object, ref_of
from lastcall_lab.controllers.objects import conditions, pods
from lastcall_lab.controllers.workloads import job_indexes
from lastcall_lab.controllers.workloads.job_failures import PodFailureVerdict, ended_at, judge_failure

TRACKING = "batch.kubernetes.io/job-tracking"
MOST_UNCOUNTED = 500
"""The maximum number of pods in ``uncountedTerminatedPods``."""


class JobPods:
    """Facts about one Job and its pods. ``target``: ``SuccessCriteriaMet``, ``FailureTarget``, or empty."""

    def __init__(self, job: Object, own: Sequence[Object]) -> None:
        self.job, self.own = job, own
        self.spec: Mapping[str, Any] = job["spec"]
        self.status: Mapping[str, Any] = job.get("status") or {}
        self.indexed = self.spec.get("completionMode") == "Indexed"
        self.by_index = self.spec.get("backoffLimitPerIndex") is not None
        self.completions: int = self.spec.get("completions") or 0
        uncounted = self.status.get("uncountedTerminatedPods") or {}
        self.uncounted = {name: list(uncounted.get(name) or ()) for name in ("succeeded", "failed")}
        self.active = [pod for pod in own if pods.is_active(pod)]
        self.ending = [pod for pod in own if pods.is_terminating(pod)]
        self.tracked = [pod for pod in own if is_tracked(pod)]

    # -- ended pods ----------------------------------------------------------------------------------------------------

    @property
    def replaces_when_gone(self) -> bool:
        """Whether a pod being deleted is replaced only after it is gone (KEP-3939)."""
        return self.spec.get("podReplacementPolicy") == "Failed" or self.spec.get("podFailurePolicy") is not None

    def is_failed(self, pod: Object) -> bool:
        """Whether the pod counts as failed. A pod being deleted does, unless the policy waits for its end."""
        if pods.pod_phase(pod) == "Failed":
            return True
        going = bool(pod["metadata"].get("deletionTimestamp"))
        return going and pods.pod_phase(pod) != "Succeeded" and not self.replaces_when_gone

    def failure_verdict(self, pod: Object) -> PodFailureVerdict:
        """The policy's verdict on its failure."""
        return judge_failure(self.spec.get("podFailurePolicy"), pod)

    def valid_index(self, pod: Object) -> int | None:
        """Its index; None if absent or invalid."""
        return job_indexes.index_of(pod, self.completions)

    def unnoted_pods(self, *, failed: bool) -> list[Object]:
        """Ended pods that the status does not record yet."""
        noted = self.uncounted["failed" if failed else "succeeded"]
        return [
            pod
            for pod in self.tracked
            if pod["metadata"]["uid"] not in noted
            and (not self.indexed or self.valid_index(pod) is not None)
            and (self.is_failed(pod) if failed else pods.pod_phase(pod) == "Succeeded")
        ]

    @cached_property
    def noted_indexes(self) -> set[int]:
        """The indexes recorded as succeeded in the status."""
        return job_indexes.parse_indexes(self.status.get("completedIndexes", ""), self.completions)

    @cached_property
    def succeeded_indexes(self) -> set[int]:
        """The indexes that have succeeded."""
        done = [pod for pod in self.tracked if pods.pod_phase(pod) == "Succeeded"]
        return self.noted_indexes | {index for pod in done if (index := self.valid_index(pod)) is not None}

    @cached_property
    def failed_indexes(self) -> set[int]:
        """The indexes that have failed for good, by backoffLimitPerIndex or FailIndex."""
        if not self.by_index:
            return set()
        noted = job_indexes.parse_indexes(self.status.get("failedIndexes") or "", self.completions)
        lost = [pod for pod in self.tracked if self.is_failed(pod) and self._is_index_failed(pod)]
        return noted | {index for pod in lost if (index := self.valid_index(pod)) is not None}

    def _is_index_failed(self, pod: Object) -> bool:
        said = self.failure_verdict(pod)
        limit: int = self.spec["backoffLimitPerIndex"]
        return said.fails_index or (said.counts and job_indexes.index_failure_count(pod, ignored=False) >= limit)

    @property
    def success_count(self) -> int:
        """The number of succeeded pods, or of succeeded indexes."""
        if self.indexed:
            return len(self.succeeded_indexes)
        before: int = self.status.get("succeeded", 0)
        return before + len(self.unnoted_pods(failed=False)) + len(self.uncounted["succeeded"])

    @property
    def failure_count(self) -> int:
        """The number of failed pods that count towards backoffLimit."""
        new = sum(self.failure_verdict(pod).counts for pod in self.unnoted_pods(failed=True))
        return int(self.status.get("failed", 0) + new + len(self.uncounted["failed"]))

    @cached_property
    def last_failed_pods(self) -> dict[int, Object]:
        """Per index, the failed pod whose failure count its replacement inherits; it keeps its finalizer until then."""
        found: dict[int, Object] = {}
        if not self.by_index:
            return found
        over = self.succeeded_indexes | self.failed_indexes | {self.valid_index(pod) for pod in self.active}
        for pod in self.tracked:
            index = self.valid_index(pod)
            if index is not None and index not in over and self.is_failed(pod):
                other = found.get(index)
                found[index] = pod if other is None or _is_later(pod, other) else other
        return found

    # -- counting and release ------------------------------------------------------------------------------------------

    def status_with_counts(self, target: str) -> Object:
        """The status after the next step of counting (``trackJobStatusAndRemoveFinalizers``)."""
        present = {pod["metadata"]["uid"] for pod in self.tracked}
        kept = {name: [uid for uid in uids if uid in present] for name, uids in self.uncounted.items()}
        totals = {
            name: self.status.get(name, 0) + len(self.uncounted[name]) - len(kept[name]) for name in self.uncounted
        }
        indexes = set(self.noted_indexes)
        for pod in self.tracked:
            if len(kept["succeeded"]) + len(kept["failed"]) >= MOST_UNCOUNTED:
                break
            if self._may_go(pod, target):
                self._note_pod(pod, target, kept, indexes)
        status: Object = {"uncountedTerminatedPods": {name: uids for name, uids in kept.items() if uids}, **totals}
        if self.indexed:
            status |= {"succeeded": len(indexes), "completedIndexes": job_indexes.format_indexes(indexes)}
            if self.by_index:
                status["failedIndexes"] = job_indexes.format_indexes(self.failed_indexes)
        return status

    def _note_pod(self, pod: Object, target: str, kept: Mapping[str, list[str]], indexes: set[int]) -> None:
        uid, index = pod["metadata"]["uid"], self.valid_index(pod)
        if self.indexed and index is None:
            return
        if pods.pod_phase(pod) == "Succeeded" and uid not in kept["failed"]:
            if self.indexed and index is not None:
                indexes.add(index)
            elif uid not in kept["succeeded"]:
                kept["succeeded"].append(uid)
        elif self._counts_as_failed(pod, target) and uid not in kept["failed"] and self.failure_verdict(pod).counts:
            kept["failed"].append(uid)

    def _counts_as_failed(self, pod: Object, target: str) -> bool:
        """Whether the pod counts as failed. Once the Job has failed, every unfinished pod does."""
        return self.is_failed(pod) or target == "FailureTarget"

    def _may_go(self, pod: Object, target: str) -> bool:
        """Whether the Job no longer needs the pod (``canRemoveFinalizer``)."""
        if target or self.job["metadata"].get("deletionTimestamp") or pods.pod_phase(pod) == "Succeeded":
            return True
        return self.is_failed(pod) and self.last_failed_pods.get(self._order_key(pod)) is not pod

    def _order_key(self, pod: Object) -> int:
        index = self.valid_index(pod)
        return -1 if index is None else index

    def release_patches(self, target: str) -> Iterator[PatchObject]:
        """Removes the finalizer from pods that the status records, and from pods that do not count."""
        noted = {*self.uncounted["succeeded"], *self.uncounted["failed"]}
        for pod in self.tracked:
            if pod["metadata"]["uid"] in noted or (
                self._may_go(pod, target) and not self._must_be_counted(pod, target)
            ):
                yield release_patch(pod)

    def _must_be_counted(self, pod: Object, target: str) -> bool:
        """Whether the status must record the pod before its finalizer is removed."""
        if self.indexed and self.valid_index(pod) is None:
            return False
        if pods.pod_phase(pod) == "Succeeded":
            return not self.indexed or self.valid_index(pod) not in self.noted_indexes
        return self._counts_as_failed(pod, target) and self.failure_verdict(pod).counts


def is_tracked(pod: Object) -> bool:
    """Whether the pod has the Job tracking finalizer."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def release_patch(pod: Object) -> PatchObject:
    """Removes the finalizer; the revision as precondition protects concurrent additions."""
    metadata = pod["metadata"]
    left = [one for one in metadata.get("finalizers") or () if one != TRACKING]
    body = {"metadata": {"finalizers": left}}
    return PatchObject(ref_of("pods", pod), body, uid=metadata["uid"], revision=metadata["resourceVersion"])


def is_finished(job: Object) -> bool:
    """Whether the Job is Complete or Failed."""
    said = (job.get("status") or {}).get("conditions") or ()
    return conditions.is_condition_true(said, "Complete") or conditions.is_condition_true(said, "Failed")


def surplus_pods(known: JobPods, at_least: int) -> list[Object]:
    """Active pods to delete: without a valid index, duplicates of an index, and those above the wanted number."""
    left: list[Object] = []
    gone: list[Object] = []
    if known.indexed:
        groups: dict[int | None, list[Object]] = {}
        for pod in known.active:
            groups.setdefault(known.valid_index(pod), []).append(pod)
        for index, found in groups.items():
            spare = len(found) if index is None else len(found) - 1
            ordered = pods.pods_to_delete(found, len(found), 0.0)
            gone, left = [*gone, *ordered[:spare]], [*left, *ordered[spare:]]
    else:
        left = list(known.active)
    return [*gone, *pods.pods_to_delete(left, max(0, at_least - len(gone)), 0.0)]


def failures_before(known: JobPods, index: int) -> Mapping[str, int]:
    """The failure count that the next pod of an index inherits."""
    last = known.last_failed_pods.get(index)
    if last is None:
        return {job_indexes.FAILURES: 0}
    counted = job_indexes.index_failure_count(last, ignored=False)
    ignored = job_indexes.index_failure_count(last, ignored=True) - counted
    counts = known.failure_verdict(last).counts
    found = {job_indexes.FAILURES: counted + counts}
    return {**found, job_indexes.IGNORED: ignored + (not counts)} if ignored or not counts else found


def _is_later(pod: Object, other: Object) -> bool:
    return (job_indexes.index_failure_count(pod, ignored=True), ended_at(pod)) >= (
        job_indexes.index_failure_count(other, ignored=True),
        ended_at(other),
    )


def taken_indexes(known: JobPods) -> Collection[int]:
    """Indexes that need no new pod now."""
    there = [*known.active, *(known.ending if known.replaces_when_gone else ())]
    return (
        known.succeeded_indexes
        | known.failed_indexes
        | {i for pod in there if (i := known.valid_index(pod)) is not None}
    )
