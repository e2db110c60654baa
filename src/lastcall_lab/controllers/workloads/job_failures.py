"""The effect of a failed pod on its Job (``job/pod_failure_policy.go``, ``job/backoff_utils.go``), pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lastcall_lab.controllers.framework.view import Object
from lastcall_lab.controllers.objects import pods


class PodFailureVerdict(NamedTuple):
    """``counts``: towards backoffLimit; ``fails_job``: why the whole Job fails; ``fails_index``: the index fails."""

    counts: bool = True
    fails_job: str = ""
    fails_index: bool = False


def judge_failure(policy: Mapping[str, Any] | None, pod: Object) -> PodFailureVerdict:
    """Applies the first matching rule of the podFailurePolicy (KEP-3329); without a match, a failure counts."""
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        said = _matching_requirement(rule, pod)
        if said is None:
            continue
        match rule["action"]:
            case "Ignore":
                return PodFailureVerdict(counts=False)
            case "FailIndex":
                return PodFailureVerdict(fails_index=True)
            case "FailJob":
                return PodFailureVerdict(fails_job=f"{said} matching FailJob rule at index {number}")
        return PodFailureVerdict()
    return PodFailureVerdict()


def _matching_requirement(rule: Mapping[str, Any], pod: Object) -> str | None:
    """The matching requirement in Kubernetes' words; None if none matches."""
    place, status = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}", pod.get("status") or {}
    if codes := rule.get("onExitCodes"):
        for container in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
            code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
            named = codes.get("containerName") in (None, container["name"])
            if code and named and (code in codes["values"]) == (codes["operator"] == "In"):
                return f"Container {container['name']} for pod {place} failed with exit code {code}"
        return None
    wanted = {(one["type"], one.get("status", "True")) for one in rule.get("onPodConditions") or ()}
    for one in status.get("conditions") or ():
        if (one["type"], one["status"]) in wanted:
            return f"Pod {place} has condition {one['type']}"
    return None


def has_restarted_too_often(job: Object, own: Sequence[Object]) -> bool:
    """Whether container restarts within pods have used up backoffLimit (``pastBackoffLimitOnFailure``)."""
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    statuses = [
        one
        for pod in own
        if pods.pod_phase(pod) in ("Running", "Pending")
        for name in ("initContainerStatuses", "containerStatuses")
        for one in (pod.get("status") or {}).get(name) or ()
    ]
    restarts, limit = sum(one.get("restartCount", 0) for one in statuses), job["spec"].get("backoffLimit", 6)
    return bool(restarts > 0 if limit == 0 else restarts >= limit)


# -- times -------------------------------------------------------------------------------------------------------------


class JobBackoff(NamedTuple):
    """Failed pods since the last success, and the end of the last one in seconds since 1970."""

    failures: int = 0
    last: float = 0.0

    def with_ended_pods(self, succeeded: Sequence[float], failed: Sequence[float]) -> "JobBackoff":
        """Adds newly ended pods with their end times (``newBackoffRecord``).

        A success resets the count when it is observed, even if a failure's time is from a clock that was ahead.
        """
        if succeeded:
            since = [at for at in failed if at > max(succeeded)]
            return JobBackoff(len(since), max(since, default=0.0))
        return JobBackoff(self.failures + len(failed), max(failed)) if failed else self


def ended_at(pod: Object) -> float:
    """The end of the containers, else when the pod became not ready, was marked for deletion, or was created."""
    metadata = pod["metadata"]
    if times := list(_container_end_times(pod)):
        return max(times)
    ready = pods.condition_of(pod, "Ready")
    if ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return pods.unix_seconds(ready["lastTransitionTime"])
    if metadata.get("deletionTimestamp"):
        return pods.unix_seconds(metadata["deletionTimestamp"]) - (metadata.get("deletionGracePeriodSeconds") or 0)
    return pods.unix_seconds(metadata["creationTimestamp"])


def _container_end_times(pod: Object) -> Iterator[float]:
    """The end times of all containers; empty if one still runs."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    times = [((one.get("state") or {}).get("terminated") or {}).get("finishedAt") for one in statuses]
    if all(times):
        yield from (pods.unix_seconds(one) for one in times if one)


def wait_after(failures: int, last: float, now: float, *, first: float, longest: float) -> float:
    """Seconds until a new pod may be created after that many failures, the last at ``last``. Doubles each time."""
    if not failures:
        return 0.0
    return max(0.0, last + min(first * 2.0 ** min(failures - 1, 30), longest) - now)
