"""The agent's DaemonSet and the configuration that it starts with (pure).

The agent needs the host's network (its probes and hooks reach pods and the API server while pods end), its bus and its
container runtime, and root, which both demand. It needs no capability, no privileged container and no ``hostPID``:
systemd-logind learns the caller's process from the bus, and what has to outlive the container runs in services that the
host's systemd starts on request (``adapters.logind.host_lock``).
"""

import yaml

from lastcall import names
from lastcall.manifests.rbac import Object

NAME = "lastcall-agent"
"""Name of the DaemonSet, its ConfigMap, the ServiceAccount, the roles and their bindings."""

PORT = 9466
"""Port of the status page on the node's loopback address: metrics and probes."""

METRICS_PORT = 9469
"""Port on the node's address of the metrics over TLS, if they are served there."""

CONTAINERD = "unix:///run/containerd/containerd.sock"

DAY_ONE: Object = {
    "apiVersion": names.API_VERSION,
    "kind": names.AGENT_CONFIGURATION,
    "mode": "Observe",
    "shutdownGracePeriod": "30s",
    "shutdownGracePeriodCriticalPods": "10s",
    "staticPodPath": "/etc/kubernetes/manifests",
}
"""The configuration to begin with: it records what would be ended and ends nothing."""

_CONFIG_DIRECTORY = "/etc/lastcall"
_KUBELET_ROOT = "/var/lib/kubelet"


def selector_labels() -> dict[str, str]:
    """The labels that select the agent's pods; they never change."""
    return {"app.kubernetes.io/name": "lastcall", "app.kubernetes.io/component": "agent"}


def agent_labels() -> dict[str, str]:
    """The labels of all the agent's objects."""
    return {**selector_labels(), "app.kubernetes.io/part-of": "lastcall"}


def agent_config_map(namespace: str) -> Object:
    """The ConfigMap with ``agent.yaml``; fields in the order of the alphabet, as Helm writes them."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": namespace, "labels": agent_labels()},
        "data": {"agent.yaml": yaml.safe_dump(DAY_ONE)},
    }


def agent_daemon_set(namespace: str, *, image: str, endpoint: str = CONTAINERD, node_metrics: bool = False) -> Object:
    """One agent on every Linux node, whatever its taints. ``endpoint``: the socket of the CRI runtime.

    ``node_metrics``: metrics over TLS on the node's address, for which ``metrics_access_objects`` are needed.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": namespace, "labels": agent_labels()},
        "spec": {
            "selector": {"matchLabels": selector_labels()},
            # One after the other: a node without its agent for a second does not wait for its pods if it shuts down.
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {"metadata": {"labels": agent_labels()}, "spec": _pod_spec(image, endpoint, node_metrics)},
        },
    }


def _pod_spec(image: str, endpoint: str, node_metrics: bool) -> Object:
    return {
        "serviceAccountName": NAME,
        "priorityClassName": "system-node-critical",
        # An agent that is stopped asks logind once more, and has up to five seconds to stop a watchdog.
        "terminationGracePeriodSeconds": 15,
        "hostNetwork": True,
        "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "seccompProfile": {"type": "RuntimeDefault"},
            # The profile of container runtimes forbids D-Bus.
            "appArmorProfile": {"type": "Unconfined"},
        },
        "containers": [_agent_container(image, endpoint, node_metrics)],
        "volumes": _volumes(endpoint),
    }


def _agent_container(image: str, endpoint: str, node_metrics: bool) -> Object:
    return {
        "name": "agent",
        "image": image,
        "command": ["lastcall"],
        "args": [
            "agent",
            f"--config={_CONFIG_DIRECTORY}/agent.yaml",
            "--node-name=$(NODE_NAME)",
            f"--container-runtime-endpoint={endpoint}",
            "--kubelet-unit=kubelet.service",
            f"--kubelet-root-dir={_KUBELET_ROOT}",
            "--in-cluster",
            "--supervise",
            f"--metrics-bind-address=127.0.0.1:{PORT}",
            *([f"--secure-metrics-bind-address=$(HOST_IP):{METRICS_PORT}"] if node_metrics else []),
            "--log-format=json",
        ],
        "env": [
            _pod_field_env("NODE_NAME", "spec.nodeName"),
            _pod_field_env("POD_UID", "metadata.uid"),
            *([_pod_field_env("HOST_IP", "status.hostIP")] if node_metrics else []),
        ],
        "ports": [_host_port("status", PORT), *([_host_port("metrics", METRICS_PORT)] if node_metrics else [])],
        "livenessProbe": _http_probe("/healthz", period=10, failures=6),
        "readinessProbe": _http_probe("/readyz", period=5, failures=2),
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG_DIRECTORY, "readOnly": True},
            {"name": "state", "mountPath": "/var/lib/lastcall"},
            {"name": "delay-limit", "mountPath": "/etc/systemd/logind.conf.d"},
            {"name": "bus", "mountPath": "/run/dbus", "readOnly": True},
            {"name": "systemd", "mountPath": "/run/systemd/system", "readOnly": True},
            # Below it are the containers' file systems: ends of theirs must reach this mount too.
            {
                "name": "runtime",
                "mountPath": _socket_directory(endpoint),
                "readOnly": True,
                "mountPropagation": "HostToContainer",
            },
            {"name": "kubernetes", "mountPath": "/etc/kubernetes", "readOnly": True},
            # Mounts below it have to end here too: a mount without propagation would keep every volume mounted.
            {"name": "kubelet", "mountPath": _KUBELET_ROOT, "mountPropagation": "HostToContainer"},
        ],
    }


def _volumes(endpoint: str) -> list[Object]:
    """Directories, not sockets: a daemon that restarts makes its socket anew."""
    return [
        {"name": "config", "configMap": {"name": NAME}},
        _host_path("state", "/var/lib/lastcall", "DirectoryOrCreate"),
        _host_path("delay-limit", "/etc/systemd/logind.conf.d", "DirectoryOrCreate"),
        _host_path("bus", "/run/dbus", "Directory"),
        _host_path("systemd", "/run/systemd/system", "Directory"),
        _host_path("runtime", _socket_directory(endpoint), "Directory"),
        # The kubelet's own identity: its kubeconfig and the manifests of static pods; its certificate is below its root,
        # with the mount points of volumes and the sockets of CSI drivers.
        _host_path("kubernetes", "/etc/kubernetes", "DirectoryOrCreate"),
        _host_path("kubelet", _KUBELET_ROOT, "DirectoryOrCreate"),
    ]


def _socket_directory(endpoint: str) -> str:
    return endpoint.removeprefix("unix://").rpartition("/")[0]


def _host_path(name: str, path: str, kind: str) -> Object:
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def _pod_field_env(name: str, field: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field}}}


def _host_port(name: str, port: int) -> Object:
    return {"name": name, "containerPort": port, "hostPort": port, "protocol": "TCP"}


def _http_probe(path: str, *, period: int, failures: int) -> Object:
    return {
        "httpGet": {"path": path, "host": "127.0.0.1", "port": "status"},
        "periodSeconds": period,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }
