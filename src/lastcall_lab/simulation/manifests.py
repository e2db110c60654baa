"""The objects of the Kubernetes API that a scenario's words mean (pure)."""

from collections.abc import Iterator
from typing import Any

from lastcall_lab.simulation.scenario import Scenario, ScenarioWorkload, ScenarioWorkloadKind
from lastcall_lab.volumes import STORAGE_CLASS

Object = dict[str, Any]

PORT = 80
LABEL = "app"
_THERE = ("default", "kube-system", "kube-public", "kube-node-lease")
"""Namespaces that the API server itself makes."""


def namespace_objects(scenario: Scenario) -> Iterator[Object]:
    """Those that something is in, and that nothing else makes."""
    made = {*_THERE, *(obj["metadata"]["name"] for obj in scenario.objects if obj["kind"] == "Namespace")}
    used = [one.namespace for one in scenario.workloads]
    used += [obj["metadata"].get("namespace", "") for obj in scenario.objects]
    for name in dict.fromkeys(used):
        if name and name not in made:
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def workload_objects(workload: ScenarioWorkload) -> Iterator[Object]:
    """Service and budget first, so that they are there when the pods come."""
    if workload.requests or workload.kind is ScenarioWorkloadKind.STATEFUL_SET:
        yield _service_object(workload)
    if workload.min_available or workload.max_unavailable:
        yield _budget_object(workload)
    yield _workload_object(workload)


def _workload_object(workload: ScenarioWorkload) -> Object:
    labels = {LABEL: workload.name}
    template = {"metadata": {"labels": labels}, "spec": _pod_spec(workload)}
    spec: Object = {"template": template}
    if workload.kind is ScenarioWorkloadKind.JOB:
        spec |= {"completions": workload.replicas, "parallelism": workload.replicas}
        template["spec"]["restartPolicy"] = "Never"
        return _new_object("batch/v1", workload, spec)
    spec["selector"] = {"matchLabels": labels}
    if workload.kind is not ScenarioWorkloadKind.DAEMON_SET:
        spec["replicas"] = workload.replicas
    if workload.kind is ScenarioWorkloadKind.STATEFUL_SET:
        spec["serviceName"] = workload.name
        if workload.volume:
            spec["volumeClaimTemplates"] = [_claim_template()]
    return _new_object("apps/v1", workload, spec)


def _pod_spec(workload: ScenarioWorkload) -> Object:
    requests = {"cpu": workload.cpu, "memory": workload.memory}
    container: Object = {"name": "main", "image": workload.name, "resources": {"requests": requests}}
    if workload.kind is not ScenarioWorkloadKind.JOB:
        container["readinessProbe"] = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
        container["ports"] = [{"containerPort": PORT}]
    if workload.pre_stop:
        container["lifecycle"] = {"preStop": {"exec": {"command": ["prepare"]}}}
    if workload.volume:
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    spec: Object = {
        "containers": [container],
        "terminationGracePeriodSeconds": workload.grace,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }
    if workload.priority_class:
        spec["priorityClassName"] = workload.priority_class
    if not workload.links:
        spec["enableServiceLinks"] = False
    return spec


def _claim_template() -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": STORAGE_CLASS,
    }
    return {"metadata": {"name": "data"}, "spec": spec}


def _service_object(workload: ScenarioWorkload) -> Object:
    spec: Object = {"selector": {LABEL: workload.name}, "ports": [{"port": PORT}]}
    if not workload.requests:
        spec["clusterIP"] = "None"
    return _new_object("v1", workload, spec, kind="Service")


def _budget_object(workload: ScenarioWorkload) -> Object:
    bounds = {"minAvailable": workload.min_available, "maxUnavailable": workload.max_unavailable}
    spec: Object = {"selector": {"matchLabels": {LABEL: workload.name}}}
    spec |= {name: int(said) if said.isdigit() else said for name, said in bounds.items() if said}
    return _new_object("policy/v1", workload, spec, kind="PodDisruptionBudget")


def _new_object(version: str, workload: ScenarioWorkload, spec: Object, kind: str = "") -> Object:
    metadata = {"name": workload.name, "namespace": workload.namespace}
    return {"apiVersion": version, "kind": kind or workload.kind.value, "metadata": metadata, "spec": spec}
