"""The guard's Deployment, ConfigMap, Service, PodDisruptionBudget and NetworkPolicy (pure)."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from lastcall.manifests.guard_grants import NAME
from lastcall.manifests.network_policy import network_policy_object
from lastcall.manifests.rbac import Object
from lastcall.model.eviction_request_mode import EvictionRequestMode

WEBHOOK_PORT = 9443
STATUS_PORT = 9468
DRAIN_SECONDS = 15
"""How long a replica that ends answers reviews: until no API server has it among the Service's endpoints."""

_USER = 65532
_CONFIG_DIRECTORY = "/etc/lastcall"
_CLIENTS_DIRECTORY = "/etc/lastcall-clients"


class _MountedFile(NamedTuple):
    """A file of a volume, and the option that names it."""

    name: str
    volume: Object
    path: str
    option: str


def guard_config_map(namespace: str, labels: dict[str, str], config: str) -> Object:
    """The ConfigMap with ``guard.yaml``, a GuardConfiguration."""
    metadata = {"name": NAME, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"guard.yaml": config}}


def guard_deployment(
    namespace: str,
    labels: dict[str, str],
    *,
    image: str,
    replicas: int,
    eviction_requests: EvictionRequestMode = EvictionRequestMode.OFF,
    settle_seconds: int | None = None,
    config: str = "",
    client_ca_secret: str = "",
) -> Object:
    """All replicas answer reviews; each is on a node of its own if there are enough.

    ``config``: the content of their ConfigMap. They read it when they start, so another content starts others.
    ``client_ca_secret``: the Secret with the authority (``ca.crt``) of the API server's certificate.
    """
    metadata: Object = {"labels": labels}
    options = []
    if eviction_requests is not EvictionRequestMode.OFF:
        options.append(f"--eviction-requests={eviction_requests.value}")
    if settle_seconds is not None:
        options.append(f"--settle-seconds={settle_seconds}")
    files = []
    if config:
        files.append(
            _MountedFile("config", {"configMap": {"name": NAME}}, f"{_CONFIG_DIRECTORY}/guard.yaml", "--config")
        )
    if client_ca_secret:
        volume = {"secret": {"secretName": client_ca_secret}}
        files.append(_MountedFile("clients", volume, f"{_CLIENTS_DIRECTORY}/ca.crt", "--client-ca-file"))
    if config:
        digest = hashlib.sha256(config.rstrip("\n").encode()).hexdigest()
        metadata["annotations"] = {"checksum/config": digest}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": _selector(labels)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": metadata, "spec": _pod_spec(image, labels, options, files)},
        },
    }


def guard_service(namespace: str, labels: dict[str, str]) -> Object:
    """Where the API server finds the webhook."""
    ports = [{"name": "webhook", "port": 443, "targetPort": "webhook", "protocol": "TCP"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {"selector": _selector(labels), "ports": ports},
    }


def guard_budget(namespace: str, labels: dict[str, str]) -> Object:
    """One replica may be drained at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": _selector(labels)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def guard_network_policy(namespace: str, labels: dict[str, str]) -> Object:
    """Open to everybody: an API server comes from a node's address, which no NetworkPolicy can select."""
    return network_policy_object(NAME, namespace, labels, _selector(labels), ports=["webhook", "status"])


def _selector(labels: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key != "app.kubernetes.io/part-of"}


def _pod_spec(image: str, labels: dict[str, str], options: Sequence[str], files: Sequence[_MountedFile]) -> Object:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": _selector(labels)}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": DRAIN_SECONDS + 15,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"},
        ],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        "containers": [_container(image, options, files)],
        **({"volumes": [{"name": one.name, **one.volume} for one in files]} if files else {}),
    }


def _container(image: str, options: Sequence[str], files: Sequence[_MountedFile]) -> Object:
    mounts = [{"name": one.name, "mountPath": one.path.rpartition("/")[0], "readOnly": True} for one in files]
    return {
        "name": "guard",
        "image": image,
        "command": ["lastcall"],
        "args": [
            "guard",
            "run",
            *(f"{one.option}={one.path}" for one in files),
            f"--webhook-bind-address=$(POD_IP):{WEBHOOK_PORT}",
            f"--metrics-bind-address=$(POD_IP):{STATUS_PORT}",
            f"--drain-seconds={DRAIN_SECONDS}",
            *options,
            "--log-format=json",
        ],
        "env": [_field_env("POD_IP", "status.podIP"), _field_env("POD_NAME", "metadata.name")],
        "ports": [
            {"name": "webhook", "containerPort": WEBHOOK_PORT, "protocol": "TCP"},
            {"name": "status", "containerPort": STATUS_PORT, "protocol": "TCP"},
        ],
        "livenessProbe": _probe("/healthz", period=10, failures=3),
        "readinessProbe": _probe("/readyz", period=2, failures=1),
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        **({"volumeMounts": mounts} if mounts else {}),
    }


def _probe(path: str, *, period: int, failures: int) -> Object:
    return {
        "httpGet": {"path": path, "port": "status"},
        "periodSeconds": period,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }


def _field_env(name: str, field: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field}}}
