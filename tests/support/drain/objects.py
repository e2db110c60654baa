"""Objects of a cluster whose nodes are drained, as JSON and as facts."""

from typing import Any

import msgspec

from lastcall.model.drain_facts import DrainNode, DrainPod

DAEMON_SET = ("n", "agents")


def pod_object(
    name: str = "p",
    *,
    namespace: str = "n",
    node: str = "n1",
    owner: dict[str, Any] | None = None,
    phase: str = "Running",
    ready: bool = True,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    deletion: str | None = None,
    priority: int | None = 0,
    grace: int | None = 30,
    image: str = "web:1",
    volumes: list[dict[str, Any]] | None = None,
    requests: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """A v1.Pod as the API has it."""
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "labels": labels or {}}
    meta |= {"annotations": annotations or {}, **metadata}
    if owner:
        meta["ownerReferences"] = [owner]
    if deletion:
        meta["deletionTimestamp"] = deletion
    container: dict[str, Any] = {"name": "main", "image": image}
    if requests:
        container["resources"] = {"requests": requests}
    whole = {
        "nodeName": node,
        "containers": [container],
        "volumes": volumes or [],
        "terminationGracePeriodSeconds": grace,
    }
    if priority is not None:
        whole["priority"] = priority
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": whole | (spec or {}), "status": status}


def owner_reference(kind: str, name: str, version: str = "apps/v1", *, controller: bool = True) -> dict[str, Any]:
    """An item of metadata.ownerReferences."""
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{kind}-{name}", "controller": controller}


def owned_object(
    name: str = "p",
    *,
    kind: str = "ReplicaSet",
    owner: str = "web",
    version: str = "apps/v1",
    controller: bool = True,
    **more: Any,
) -> dict[str, Any]:
    """A pod with an owner."""
    return pod_object(name, owner=owner_reference(kind, owner, version, controller=controller), **more)


def read_pod(value: dict[str, Any]) -> DrainPod:
    """The facts of a pod."""
    return msgspec.convert(value, DrainPod)


def bare(name: str = "p", **more: Any) -> DrainPod:
    """A pod without a controller."""
    return read_pod(pod_object(name, **more))


def owned(name: str = "p", **more: Any) -> DrainPod:
    """A pod of a ReplicaSet, or of ``kind`` and ``owner``."""
    return read_pod(owned_object(name, **more))


def daemon(daemon_set: str = "agents", *, version: str = "apps/v1", **more: Any) -> DrainPod:
    """A pod of a DaemonSet."""
    return read_pod(pod_object(owner=owner_reference("DaemonSet", daemon_set, version), **more))


def node_object(
    name: str = "n1",
    *,
    ready: str | None = "True",
    taints: list[dict[str, str]] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    unschedulable: bool = False,
) -> dict[str, Any]:
    """A v1.Node as the API has it."""
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
        "spec": {"taints": taints or [], "unschedulable": unschedulable},
        "status": {"conditions": conditions, "allocatable": allocatable or {}},
    }


def read_node(name: str = "n1", **more: Any) -> DrainNode:
    """The facts of a node."""
    return msgspec.convert(node_object(name, **more), DrainNode)
