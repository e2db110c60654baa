"""What happens to a pod that is left when the time of the drain, or its own, is over (pure)."""

from collections.abc import Iterator

from lastcall.drain.decisions.drain_course import DrainCourse
from lastcall.drain.decisions.pod_progress import PodProgress
from lastcall.drain.decisions.steps import DeletePod, FailPod, Step
from lastcall.model import duration
from lastcall.model.drain_limits import FORCE_GRACE, TimeoutPolicy

PATIENCE = 60.0
"""Seconds that a deleted pod gets beyond its grace period until the drain gives up: its kubelet may be gone."""


def find_end(course: DrainCourse, pod: PodProgress) -> float | None:
    """When the time for the pod is over, on the monotonic clock; None: never."""
    own = None
    if course.limits.pod_timeout and pod.first_asked is not None:
        own = pod.first_asked + course.limits.pod_timeout
    return min((one for one in (own, course.deadline) if one is not None), default=None)


def steps_at_end(course: DrainCourse, pod: PodProgress, end: float, now: float) -> Iterator[Step]:
    """The steps for a pod that is here after ``end``; none while it is waited for."""
    policy = course.limits.on_timeout
    if course.seen[pod.target.uid].opt_out:
        yield FailPod(target=pod.target, why=f"{_timeout_text(course, pod)}; {course.seen[pod.target.uid].opt_out}")
    elif policy is TimeoutPolicy.STOP:
        said = f"; the last answer: {pod.refusal}" if pod.refusal else ""
        yield FailPod(target=pod.target, why=_timeout_text(course, pod) + said)
    elif pod.forced_at is not None:
        yield from _wait_for_end(course, pod, pod.forced_at, now)
    elif not _others_are_left(course, pod):
        yield from (_delete if policy is TimeoutPolicy.DELETE else _force)(course, pod, end, now)


def describe_global_timeout(course: DrainCourse) -> str:
    """That the time of the whole drain is over, in the words of kubectl."""
    before = (
        f" (earlier runs of this drain took {duration.format_elapsed(round(course.spent))})" if course.spent else ""
    )
    return f"global timeout reached: {duration.format_seconds(course.limits.timeout)}{before}"


def _delete(course: DrainCourse, pod: PodProgress, end: float, now: float) -> Iterator[Step]:
    seen = course.seen[pod.target.uid]
    if seen.terminating_since is not None:
        yield from _wait_for_end(course, pod, max(seen.terminating_since, end), now)
    elif now >= end + pod.target.grace + PATIENCE:
        said = "a guard holds it" if seen.is_guarded else pod.refusal
        yield FailPod(target=pod.target, why=f"{_timeout_text(course, pod)}; it was not deleted: {said}")
    elif not seen.is_guarded and _may_ask(pod, end, now):
        # While no guard answers, its webhook may let everything pass, and no budget holds a deletion.
        yield DeletePod(target=pod.target, grace=course.settings.grace_period, forced=True)


def _force(course: DrainCourse, pod: PodProgress, end: float, now: float) -> Iterator[Step]:
    seen = course.seen[pod.target.uid]
    if seen.terminating_since is None and (pod.is_held or seen.is_guarded):
        said = f": {pod.refusal}" if pod.refusal else ""
        yield FailPod(
            target=pod.target, why=f"{_timeout_text(course, pod)}; a guard holds it, so it is not forced{said}"
        )
    elif now >= end + PATIENCE:
        yield FailPod(target=pod.target, why=f"{_timeout_text(course, pod)}; it was not deleted: {pod.refusal}")
    elif _may_ask(pod, end, now):
        yield DeletePod(target=pod.target, grace=FORCE_GRACE, forced=True)


def _wait_for_end(course: DrainCourse, pod: PodProgress, since: float, now: float) -> Iterator[Step]:
    given = course.seen[pod.target.uid].grace
    asked = pod.target.grace if given is None else given
    grace = FORCE_GRACE if course.limits.on_timeout is TimeoutPolicy.FORCE else asked
    if now >= since + grace + PATIENCE:
        seconds = duration.format_seconds(now - since)
        yield FailPod(target=pod.target, why=f"deleted {seconds} ago, and its kubelet has not confirmed its end")


def _may_ask(pod: PodProgress, end: float, now: float) -> bool:
    """An answer from before the end does not delay what follows from it."""
    return pod.last_asked is None or pod.last_asked < end or now >= pod.retry_at


def _others_are_left(course: DrainCourse, pod: PodProgress) -> bool:
    """Whether pods are left that depend on this one: they go first."""
    return pod.target.is_depended_on and any(
        not course.is_settled(other) and not other.target.is_depended_on for other in course.pods or ()
    )


def _timeout_text(course: DrainCourse, pod: PodProgress) -> str:
    limits = course.limits
    if limits.pod_timeout and find_end(course, pod) != course.deadline:
        return f"pod timeout reached: {duration.format_seconds(limits.pod_timeout)}"
    return describe_global_timeout(course)
