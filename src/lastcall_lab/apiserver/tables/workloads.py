"""Workloads, budgets and priority classes."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.tables.cell_text import (
    NONE,
    Printer,
    age_text,
    container_texts,
    duration_text,
    is_true,
    labels_text,
    name_of,
    selector_text,
    spec_of,
    status_of,
    template_of,
    time_since,
)
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object


def deployment_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a deployment."""
    spec, status = spec_of(obj), status_of(obj)
    return [
        name_of(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age_text(obj, now),
        *container_texts(template_of(obj)),
        selector_text(spec.get("selector")),
    ]


def replica_set_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a replica set."""
    spec, status = spec_of(obj), status_of(obj)
    return [
        name_of(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age_text(obj, now),
        *container_texts(template_of(obj)),
        selector_text(spec.get("selector")) or NONE,
    ]


def stateful_set_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a stateful set."""
    spec = spec_of(obj)
    ready = f"{status_of(obj).get('readyReplicas', 0)}/{spec.get('replicas', 1)}"
    return [name_of(obj), ready, age_text(obj, now), *container_texts(template_of(obj))]


def daemon_set_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a daemon set."""
    spec, status = spec_of(obj), status_of(obj)
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    return [
        name_of(obj),
        *(status.get(name, 0) for name in (*counts, "numberAvailable")),
        labels_text((template_of(obj).get("spec") or {}).get("nodeSelector")),
        age_text(obj, now),
        *container_texts(template_of(obj)),
        selector_text(spec.get("selector")) or NONE,
    ]


def job_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a job."""
    spec, status = spec_of(obj), status_of(obj)
    done, wanted, at_once = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism") or 0
    completions = f"{done}/{wanted}" if wanted is not None else f"{done}/1" + (f" of {at_once}" if at_once > 1 else "")
    return [
        name_of(obj),
        _job_word(obj),
        completions,
        _job_time(status, now),
        age_text(obj, now),
        *container_texts(template_of(obj)),
        selector_text(spec.get("selector")) or NONE,
    ]


def _job_word(obj: Object) -> str:
    for name in ("Complete", "Failed"):
        if is_true(obj, name):
            return name
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((name for name in ("Suspended", "FailureTarget") if is_true(obj, name)), "Running")


def _job_time(status: Object, now: float) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return duration_text((object_meta.parse_seconds(end) if end else now) - object_meta.parse_seconds(start))


def cron_job_cells(obj: Object, now: float) -> Sequence[Any]:
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
        time_since(last, now) if last else NONE,
        age_text(obj, now),
        *container_texts(template.get("template") or {}),
        selector_text(template.get("selector")) or NONE,
    ]


def controller_revision_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a controller revision."""
    owner = next((one for one in obj["metadata"].get("ownerReferences") or () if one.get("controller")), None)
    name = NONE
    if owner:
        group = owner["apiVersion"].rpartition("/")[0]
        name = f"{owner['kind']}.{group}".lower().rstrip(".") + f"/{owner['name']}"
    return [name_of(obj), name, obj.get("revision", 0), age_text(obj, now)]


def disruption_budget_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a pod disruption budget."""
    spec = spec_of(obj)
    bounds = ("N/A" if spec.get(name) is None else str(spec[name]) for name in ("minAvailable", "maxUnavailable"))
    return [name_of(obj), *bounds, status_of(obj).get("disruptionsAllowed", 0), age_text(obj, now)]


def priority_class_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a priority class."""
    return [
        name_of(obj),
        obj.get("value", 0),
        obj.get("globalDefault", False),
        age_text(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def scale_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a scale."""
    wanted = spec_of(obj).get("replicas", 0)
    return [name_of(obj), wanted, status_of(obj).get("replicas", 0), age_text(obj, now)]


PRINTERS: Mapping[str, Printer] = {
    "Deployment": deployment_cells,
    "ReplicaSet": replica_set_cells,
    "StatefulSet": stateful_set_cells,
    "DaemonSet": daemon_set_cells,
    "Job": job_cells,
    "CronJob": cron_job_cells,
    "ControllerRevision": controller_revision_cells,
    "PodDisruptionBudget": disruption_budget_cells,
    "PriorityClass": priority_class_cells,
    "Scale": scale_cells,
}
