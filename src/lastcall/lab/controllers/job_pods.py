"""The pods of a Job, sorted by what they mean to it; nothing is counted twice (``job/job_controller.go``), pure.

A pod that has ended is first written to ``status.uncountedTerminatedPods``, then loses the finalizer, and is counted
when both have been seen: that way none is missed and none counted twice, whatever is interrupted (KEP-2307). Pods of an
Indexed Job that succeed are known by their index instead.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from lastcall.lab.controllers import conditions, job_indexes, pods
from lastcall.lab.controllers.actions import Patch
from lastcall.lab.controllers.job_failures import Judgement, ended_at, judge
from lastcall.lab.controllers.view import Object, ref

TRACKING = "batch.kubernetes.io/job-tracking"
MOST_UNCOUNTED = 500
"""Pods that ``uncountedTerminatedPods`` holds at most."""


class JobPods:
    """Facts about one Job and its pods. ``target`` is why it ends: ``SuccessCriteriaMet``, ``FailureTarget``, or empty."""

    def __init__(self, job: Object, own: Sequence[Object]) -> None:
        self.job, self.own = job, own
        self.spec: Mapping[str, Any] = job["spec"]
        self.status: Mapping[str, Any] = job.get("status") or {}
        self.indexed = self.spec.get("completionMode") == "Indexed"
        self.by_index = self.spec.get("backoffLimitPerIndex") is not None
        self.completions: int = self.spec.get("completions") or 0
        uncounted = self.status.get("uncountedTerminatedPods") or {}
        self.uncounted = {name: list(uncounted.get(name) or ()) for name in ("succeeded", "failed")}
        self.active = [pod for pod in own if pods.active(pod)]
        self.ending = [pod for pod in own if pods.terminating(pod)]
        self.tracked = [pod for pod in own if tracked(pod)]

    # -- what has ended ------------------------------------------------------------------------------------------------

    @property
    def waits_for_the_end(self) -> bool:
        """Whether a pod that is being deleted is replaced only when it has gone (KEP-3939)."""
        return self.spec.get("podReplacementPolicy") == "Failed" or self.spec.get("podFailurePolicy") is not None

    def failed(self, pod: Object) -> bool:
        """Whether it counts as failed: one that is being deleted does, unless its end is waited for."""
        if pods.phase(pod) == "Failed":
            return True
        going = bool(pod["metadata"].get("deletionTimestamp"))
        return going and pods.phase(pod) != "Succeeded" and not self.waits_for_the_end

    def judged(self, pod: Object) -> Judgement:
        """What the policy says of its failure."""
        return judge(self.spec.get("podFailurePolicy"), pod)

    def index(self, pod: Object) -> int | None:
        """Its index; None if it has none that is valid."""
        return job_indexes.index_of(pod, self.completions)

    def new(self, *, failed: bool) -> list[Object]:
        """Pods that have ended and are not noted in the status yet."""
        noted = self.uncounted["failed" if failed else "succeeded"]
        return [
            pod
            for pod in self.tracked
            if pod["metadata"]["uid"] not in noted
            and (not self.indexed or self.index(pod) is not None)
            and (self.failed(pod) if failed else pods.phase(pod) == "Succeeded")
        ]

    @cached_property
    def noted_indexes(self) -> set[int]:
        """Those that the status has as succeeded."""
        return job_indexes.parse(self.status.get("completedIndexes", ""), self.completions)

    @cached_property
    def succeeded_indexes(self) -> set[int]:
        """Those that have succeeded."""
        done = [pod for pod in self.tracked if pods.phase(pod) == "Succeeded"]
        return self.noted_indexes | {index for pod in done if (index := self.index(pod)) is not None}

    @cached_property
    def failed_indexes(self) -> set[int]:
        """Those that have failed for good, by backoffLimitPerIndex or FailIndex."""
        if not self.by_index:
            return set()
        noted = job_indexes.parse(self.status.get("failedIndexes") or "", self.completions)
        lost = [pod for pod in self.tracked if self.failed(pod) and self._index_lost(pod)]
        return noted | {index for pod in lost if (index := self.index(pod)) is not None}

    def _index_lost(self, pod: Object) -> bool:
        said = self.judged(pod)
        limit: int = self.spec["backoffLimitPerIndex"]
        return said.fails_index or (said.counts and job_indexes.failures(pod, ignored=False) >= limit)

    @property
    def succeeded(self) -> int:
        """Pods, or indexes, that have succeeded."""
        if self.indexed:
            return len(self.succeeded_indexes)
        before: int = self.status.get("succeeded", 0)
        return before + len(self.new(failed=False)) + len(self.uncounted["succeeded"])

    @property
    def failures(self) -> int:
        """Pods that have failed and count towards backoffLimit."""
        new = sum(self.judged(pod).counts for pod in self.new(failed=True))
        return int(self.status.get("failed", 0) + new + len(self.uncounted["failed"]))

    @cached_property
    def last_failed(self) -> dict[int, Object]:
        """By index, the failed pod whose failures its replacement takes over; until then it keeps its finalizer."""
        found: dict[int, Object] = {}
        if not self.by_index:
            return found
        over = self.succeeded_indexes | self.failed_indexes | {self.index(pod) for pod in self.active}
        for pod in self.tracked:
            index = self.index(pod)
            if index is not None and index not in over and self.failed(pod):
                other = found.get(index)
                found[index] = pod if other is None or _later(pod, other) else other
        return found

    # -- what becomes of them ------------------------------------------------------------------------------------------

    def counted(self, target: str) -> Object:
        """The counters and lists of the status, one step further (``trackJobStatusAndRemoveFinalizers``)."""
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
                self._note(pod, target, kept, indexes)
        status: Object = {"uncountedTerminatedPods": {name: uids for name, uids in kept.items() if uids}, **totals}
        if self.indexed:
            status |= {"succeeded": len(indexes), "completedIndexes": job_indexes.text(indexes)}
            if self.by_index:
                status["failedIndexes"] = job_indexes.text(self.failed_indexes)
        return status

    def _note(self, pod: Object, target: str, kept: Mapping[str, list[str]], indexes: set[int]) -> None:
        uid, index = pod["metadata"]["uid"], self.index(pod)
        if self.indexed and index is None:
            return
        if pods.phase(pod) == "Succeeded" and uid not in kept["failed"]:
            if self.indexed and index is not None:
                indexes.add(index)
            elif uid not in kept["succeeded"]:
                kept["succeeded"].append(uid)
        elif self._lost(pod, target) and uid not in kept["failed"] and self.judged(pod).counts:
            kept["failed"].append(uid)

    def _lost(self, pod: Object, target: str) -> bool:
        """Whether it counts as failed: when the job has failed, every pod that has not ended does."""
        return self.failed(pod) or target == "FailureTarget"

    def _may_go(self, pod: Object, target: str) -> bool:
        """Whether the job is done with it (``canRemoveFinalizer``)."""
        if target or self.job["metadata"].get("deletionTimestamp") or pods.phase(pod) == "Succeeded":
            return True
        return self.failed(pod) and self.last_failed.get(self._place(pod)) is not pod

    def _place(self, pod: Object) -> int:
        index = self.index(pod)
        return -1 if index is None else index

    def released(self, target: str) -> Iterator[Patch]:
        """Takes the finalizer from the pods that the status has noted, and from those that are not counted."""
        noted = {*self.uncounted["succeeded"], *self.uncounted["failed"]}
        for pod in self.tracked:
            if pod["metadata"]["uid"] in noted or (self._may_go(pod, target) and not self._counts(pod, target)):
                yield release(pod)

    def _counts(self, pod: Object, target: str) -> bool:
        """Whether it has to be noted before it may go."""
        if self.indexed and self.index(pod) is None:
            return False
        if pods.phase(pod) == "Succeeded":
            return not self.indexed or self.index(pod) not in self.noted_indexes
        return self._lost(pod, target) and self.judged(pod).counts


def tracked(pod: Object) -> bool:
    """Whether it has the finalizer by which Jobs count."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def release(pod: Object) -> Patch:
    """Takes the finalizer away; the revision keeps others that come meanwhile."""
    metadata = pod["metadata"]
    left = [one for one in metadata.get("finalizers") or () if one != TRACKING]
    body = {"metadata": {"finalizers": left}}
    return Patch(ref("pods", pod), body, uid=metadata["uid"], revision=metadata["resourceVersion"])


def finished(job: Object) -> bool:
    """Whether it is over, one way or the other."""
    said = (job.get("status") or {}).get("conditions") or ()
    return conditions.holds(said, "Complete") or conditions.holds(said, "Failed")


def surplus(known: JobPods, at_least: int) -> list[Object]:
    """Active pods that go: those without a valid index, all but the best of an index, and as many as are too many."""
    left: list[Object] = []
    gone: list[Object] = []
    if known.indexed:
        groups: dict[int | None, list[Object]] = {}
        for pod in known.active:
            groups.setdefault(known.index(pod), []).append(pod)
        for index, found in groups.items():
            spare = len(found) if index is None else len(found) - 1
            ordered = pods.to_delete(found, len(found), 0.0)
            gone, left = [*gone, *ordered[:spare]], [*left, *ordered[spare:]]
    else:
        left = list(known.active)
    return [*gone, *pods.to_delete(left, max(0, at_least - len(gone)), 0.0)]


def failures_before(known: JobPods, index: int) -> Mapping[str, int]:
    """What the next pod of an index takes over from the last one."""
    last = known.last_failed.get(index)
    if last is None:
        return {job_indexes.FAILURES: 0}
    counted = job_indexes.failures(last, ignored=False)
    ignored = job_indexes.failures(last, ignored=True) - counted
    counts = known.judged(last).counts
    found = {job_indexes.FAILURES: counted + counts}
    return {**found, job_indexes.IGNORED: ignored + (not counts)} if ignored or not counts else found


def _later(pod: Object, other: Object) -> bool:
    return (job_indexes.failures(pod, ignored=True), ended_at(pod)) >= (
        job_indexes.failures(other, ignored=True),
        ended_at(other),
    )


def taken(known: JobPods) -> Collection[int]:
    """Indexes that need no pod now."""
    there = [*known.active, *(known.ending if known.waits_for_the_end else ())]
    return known.succeeded_indexes | known.failed_indexes | {i for pod in there if (i := known.index(pod)) is not None}
