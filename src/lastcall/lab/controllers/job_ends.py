"""Why a Job ends (pure): what is looked at, and in which order (``syncJob`` of ``job/job_controller.go``)."""

from typing import NamedTuple

from lastcall.lab.controllers import conditions, job_indexes, pods
from lastcall.lab.controllers.job_failures import restarted_too_often
from lastcall.lab.controllers.job_pods import JobPods

MET, FAILED = "SuccessCriteriaMet", "FailureTarget"


class Why(NamedTuple):
    """The type of the first condition, and what it and the last one (``Complete``, ``Failed``) say."""

    target: str
    reason: str
    message: str


def ends(known: JobPods, *, left: float | None) -> Why | None:
    """Why it ends although pods of it may still run; ``left`` are the seconds until its deadline."""
    said = known.status.get("conditions") or ()
    for kind in (MET, FAILED):
        if conditions.holds(said, kind):
            found = conditions.find(said, kind)
            return Why(kind, found.get("reason", ""), found.get("message", ""))
    return _fails(known, left) or _succeeds_early(known)


def reached(known: JobPods) -> Why | None:
    """Enough pods have succeeded, and none is left. Without a number, one is enough."""
    wanted = known.spec.get("completions")
    if known.active or not (known.succeeded > 0 if wanted is None else known.succeeded >= wanted):
        return None
    return Why(MET, "CompletionsReached", "Reached expected number of succeeded pods")


def seconds_left(known: JobPods, start: str | None, now: float) -> float | None:
    """Until ``activeDeadlineSeconds`` after ``start``; None if that time does not run."""
    deadline = known.spec.get("activeDeadlineSeconds")
    if deadline is None or known.spec.get("suspend") or not start:
        return None
    return float(pods.seconds(start) + deadline - now)


def _fails(known: JobPods, left: float | None) -> Why | None:
    spec, lost = known.spec, len(known.failed_indexes)
    for pod in known.own:
        if known.failed(pod) and (message := known.judged(pod).fails_job):
            return Why(FAILED, "PodFailurePolicy", message)
    if known.failures > spec.get("backoffLimit", 6) or restarted_too_often(known.job, known.own):
        return Why(FAILED, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    if left is not None and left <= 0:
        return Why(FAILED, "DeadlineExceeded", "Job was active longer than specified deadline")
    most = spec.get("maxFailedIndexes")
    if most is not None and lost > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return Why(FAILED, "MaxFailedIndexesExceeded", message)
    if lost and lost + len(known.succeeded_indexes) >= known.completions:
        return Why(FAILED, "FailedIndexes", "Job has failed indexes")
    return None


def _succeeds_early(known: JobPods) -> Why | None:
    if not known.indexed:
        return None
    message = job_indexes.succeeds(known.spec.get("successPolicy"), known.completions, known.succeeded_indexes)
    return Why(MET, "SuccessPolicy", message) if message else None
