"""What each pod of a drain waits for, in words (pure)."""

from lastcall.drain.decisions.drain_course import DrainCourse
from lastcall.drain.decisions.end_of_time import find_end
from lastcall.drain.decisions.pod_progress import PodProgress
from lastcall.model import duration


def describe_pod(course: DrainCourse, pod: PodProgress, now: float) -> str:
    """One line for a pod; "" if it is gone."""
    if pod.failure:
        return f"given up: {pod.failure}"
    if not course.is_here(pod):
        return ""
    seen = course.seen[pod.target.uid]
    if seen.terminating_since is not None:
        grace = pod.target.grace if seen.grace is None else seen.grace
        text = f"terminating for {_seconds(now - seen.terminating_since)} of its {_seconds(grace)}"
    elif seen.opt_out:
        text = f"{seen.opt_out} (mend: --ignore-opt-outs)"
    elif pod.refusal:
        text = pod.refusal
    elif pod.target.uid in course.asked or pod.accepted_at is not None:
        text = "eviction requested"
    elif pod.first_asked is None and _is_later(course, pod):
        text = "its turn comes when the pods before it are gone"
    else:
        text = "waits for its turn"
    end = find_end(course, pod)
    return text if end is None else f"{text}; {_seconds(max(end - now, 0.0))} left ({course.limits.on_timeout.value})"


def describe_round(course: DrainCourse) -> str:
    """How far the drain is, in one sentence."""
    pods = course.pods or ()
    gone = sum(not course.is_here(pod) for pod in pods)
    failed = sum(bool(pod.failure) for pod in pods)
    ending = sum(
        course.is_here(pod) and not pod.failure and course.seen[pod.target.uid].terminating_since is not None
        for pod in pods
    )
    refused = sum(bool(pod.refusal) and not course.is_settled(pod) for pod in pods)
    parts = [f"{gone} of {len(pods)} pods are gone"]
    parts += [
        f"{count} {what}" for count, what in ((ending, "terminate"), (refused, "wait"), (failed, "failed")) if count
    ]
    return ", ".join(parts)


def _is_later(course: DrainCourse, pod: PodProgress) -> bool:
    return any(other.target.tier < pod.target.tier and not course.is_settled(other) for other in course.pods or ())


def _seconds(seconds: float) -> str:
    return duration.format_elapsed(round(seconds))
