"""What makes pods, and what protects them."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall.lab.apiserver import meta
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.tables.words import (
    NONE,
    Printer,
    age,
    containers,
    duration,
    holds,
    labels,
    name_of,
    selector,
    since,
    spec_of,
    status_of,
    template_of,
)


def deployment(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a deployment."""
    spec, status = spec_of(obj), status_of(obj)
    return [
        name_of(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *containers(template_of(obj)),
        selector(spec.get("selector")),
    ]


def replica_set(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a replica set."""
    spec, status = spec_of(obj), status_of(obj)
    return [
        name_of(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
        *containers(template_of(obj)),
        selector(spec.get("selector")) or NONE,
    ]


def stateful_set(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a stateful set."""
    spec = spec_of(obj)
    ready = f"{status_of(obj).get('readyReplicas', 0)}/{spec.get('replicas', 1)}"
    return [name_of(obj), ready, age(obj, now), *containers(template_of(obj))]


def daemon_set(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a daemon set."""
    spec, status = spec_of(obj), status_of(obj)
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    return [
        name_of(obj),
        *(status.get(name, 0) for name in (*counts, "numberAvailable")),
        labels((template_of(obj).get("spec") or {}).get("nodeSelector")),
        age(obj, now),
        *containers(template_of(obj)),
        selector(spec.get("selector")) or NONE,
    ]


def job(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a job."""
    spec, status = spec_of(obj), status_of(obj)
    done, wanted, at_once = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism") or 0
    completions = f"{done}/{wanted}" if wanted is not None else f"{done}/1" + (f" of {at_once}" if at_once > 1 else "")
    return [
        name_of(obj),
        _job_word(obj),
        completions,
        _job_time(status, now),
        age(obj, now),
        *containers(template_of(obj)),
        selector(spec.get("selector")) or NONE,
    ]


def _job_word(obj: Object) -> str:
    for name in ("Complete", "Failed"):
        if holds(obj, name):
            return name
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((name for name in ("Suspended", "FailureTarget") if holds(obj, name)), "Running")


def _job_time(status: Object, now: float) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return duration((meta.seconds(end) if end else now) - meta.seconds(start))


def cron_job(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a cron job."""
    spec, status = spec_of(obj), status_of(obj)
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    last, suspend = status.get("lastScheduleTime"), spec.get("suspend")
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "<unset>" if suspend is None else str(suspend),
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age(obj, now),
        *containers(template.get("template") or {}),
        selector(template.get("selector")) or NONE,
    ]


def controller_revision(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a controller revision."""
    owner = next((one for one in obj["metadata"].get("ownerReferences") or () if one.get("controller")), None)
    name = NONE
    if owner:
        group = owner["apiVersion"].rpartition("/")[0]
        name = f"{owner['kind']}.{group}".lower().rstrip(".") + f"/{owner['name']}"
    return [name_of(obj), name, obj.get("revision", 0), age(obj, now)]


def disruption_budget(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a pod disruption budget."""
    spec = spec_of(obj)
    bounds = ("N/A" if spec.get(name) is None else str(spec[name]) for name in ("minAvailable", "maxUnavailable"))
    return [name_of(obj), *bounds, status_of(obj).get("disruptionsAllowed", 0), age(obj, now)]


def priority_class(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a priority class."""
    return [
        name_of(obj),
        obj.get("value", 0),
        obj.get("globalDefault", False),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def scale(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a scale."""
    wanted = spec_of(obj).get("replicas", 0)
    return [name_of(obj), wanted, status_of(obj).get("replicas", 0), age(obj, now)]


PRINTERS: Mapping[str, Printer] = {
    "Deployment": deployment,
    "ReplicaSet": replica_set,
    "StatefulSet": stateful_set,
    "DaemonSet": daemon_set,
    "Job": job,
    "CronJob": cron_job,
    "ControllerRevision": controller_revision,
    "PodDisruptionBudget": disruption_budget,
    "PriorityClass": priority_class,
    "Scale": scale,
}
