"""The controller's Deployment and its PodDisruptionBudget (pure)."""

from collections.abc import Sequence
from typing import Any

from lastcall.manifests.labels import NAME, common_labels, selector_labels
from lastcall.manifests.rbac import Object

PORT = 9467
"""Port of the status server: metrics and probes."""

MOVE_SECONDS = 30
"""Seconds that a pod stays bound to a node that is not Ready: Kubernetes' default of 300 is too long for a replica."""

_USER = 65532


def controller_deployment(namespace: str, *, image: str, replicas: int, arguments: Sequence[str] = ()) -> Object:
    """The replicas elect one leader; the others wait, each on another node. ``arguments``: more of them."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace, "labels": common_labels()},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector_labels()},
            # One after the other: if every replica needs a node of its own, there may be no room for one more.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": common_labels()}, "spec": _pod_spec(namespace, image, arguments)},
        },
    }


def disruption_budget(namespace: str) -> Object:
    """One pod may be drained at a time; a pod that is not ready does not block a drain."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": NAME, "namespace": namespace, "labels": common_labels()},
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector_labels()},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _pod_spec(namespace: str, image: str, arguments: Sequence[str]) -> Object:
    return {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": 30,
        # Orphans of a killed fence agent become children of process 1. The pod's pause process reaps them, lastcall
        # does not, and zombies count until no process can be started.
        "shareProcessNamespace": True,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": _tolerations(),
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_anti_affinity_term()]}},
        "containers": [_controller_container(namespace, image, arguments)],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }


def _controller_container(namespace: str, image: str, arguments: Sequence[str]) -> Object:
    return {
        "name": "controller",
        "image": image,
        "command": ["lastcall"],
        "args": [
            "controller",
            f"--lease-namespace={namespace}",
            f"--metrics-bind-address=$(POD_IP):{PORT}",
            "--log-format=json",
            *arguments,
        ],
        "env": [_pod_field_env("POD_IP", "status.podIP"), _pod_field_env("POD_NAME", "metadata.name")],
        "ports": [{"name": "status", "containerPort": PORT, "protocol": "TCP"}],
        "livenessProbe": _http_probe("/healthz", period=10, failures=3),
        "readinessProbe": _http_probe("/readyz", period=5, failures=2),
        "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "384Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        # Fence agents and the cloud's SDK need a writable directory.
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108  (the pod's own)
    }


def _tolerations() -> list[Object]:
    """Tolerates most taints, but leaves a lost node early, because its deletion from there is our own task."""
    stays: list[Object] = [
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"},
    ]
    return stays + [
        {
            "key": f"node.kubernetes.io/{state}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": MOVE_SECONDS,
        }
        for state in ("not-ready", "unreachable")
    ]


def _anti_affinity_term() -> Object:
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": selector_labels()}}


def _http_probe(path: str, *, period: int, failures: int) -> Object:
    return {
        "httpGet": {"path": path, "port": "status"},
        "periodSeconds": period,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }


def _pod_field_env(name: str, field: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field}}}
