"""Why a Job ends (pure): the criteria in the order of ``syncJob`` (``job/job_controller.go``)."""

from typing import NamedTuple

from lastcall_lab.controllers.objects import conditions, pods
from lastcall_lab.controllers.workloads import job_indexes
from lastcall_lab.controllers.workloads.job_failures import has_restarted_too_often
from lastcall_lab.controllers.workloads.job_pods import JobPods

MET, FAILED = "SuccessCriteriaMet", "FailureTarget"


class JobEndReason(NamedTuple):
    """The type of the first condition, and reason and message for it and for ``Complete`` or ``Failed``."""

    target: str
    reason: str
    message: str


def job_end_reason(known: JobPods, *, left: float | None) -> JobEndReason | None:
    """Why the Job ends, even if pods still run; ``left`` are the seconds until its deadline."""
    said = known.status.get("conditions") or ()
    for kind in (MET, FAILED):
        if conditions.is_condition_true(said, kind):
            found = conditions.find_condition(said, kind)
            return JobEndReason(kind, found.get("reason", ""), found.get("message", ""))
    return _failure_reason(known, left) or _early_success_reason(known)


def completion_reason(known: JobPods) -> JobEndReason | None:
    """Enough pods have succeeded and none is active. Without ``completions``, one success is enough."""
    wanted = known.spec.get("completions")
    if known.active or not (known.success_count > 0 if wanted is None else known.success_count >= wanted):
        return None
    return JobEndReason(MET, "CompletionsReached", "Reached expected number of succeeded pods")


def seconds_left(known: JobPods, start: str | None, now: float) -> float | None:
    """Seconds until ``activeDeadlineSeconds`` after ``start`` have passed; None without a deadline."""
    deadline = known.spec.get("activeDeadlineSeconds")
    if deadline is None or known.spec.get("suspend") or not start:
        return None
    return float(pods.unix_seconds(start) + deadline - now)


def _failure_reason(known: JobPods, left: float | None) -> JobEndReason | None:
    spec, lost = known.spec, len(known.failed_indexes)
    for pod in known.own:
        if known.is_failed(pod) and (message := known.failure_verdict(pod).fails_job):
            return JobEndReason(FAILED, "PodFailurePolicy", message)
    if known.failure_count > spec.get("backoffLimit", 6) or has_restarted_too_often(known.job, known.own):
        return JobEndReason(FAILED, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    if left is not None and left <= 0:
        return JobEndReason(FAILED, "DeadlineExceeded", "Job was active longer than specified deadline")
    most = spec.get("maxFailedIndexes")
    if most is not None and lost > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return JobEndReason(FAILED, "MaxFailedIndexesExceeded", message)
    if lost and lost + len(known.succeeded_indexes) >= known.completions:
        return JobEndReason(FAILED, "FailedIndexes", "Job has failed indexes")
    return None


def _early_success_reason(known: JobPods) -> JobEndReason | None:
    if not known.indexed:
        return None
    message = job_indexes.success_policy_reason(
        known.spec.get("successPolicy"), known.completions, known.succeeded_indexes
    )
    return JobEndReason(MET, "SuccessPolicy", message) if message else None
