"""Pod helpers shared by several controllers (pure): ``k8s.io/kubernetes/pkg/controller/controller_utils.go``."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from lastcall_lab.controllers.framework.view import Object

FINISHED = ("Succeeded", "Failed")


def unix_seconds(text: str) -> float:
    """An RFC 3339 time as seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def is_active(pod: Object) -> bool:
    """Whether it counts as a replica: neither finished nor being deleted."""
    return pod_phase(pod) not in FINISHED and not pod["metadata"].get("deletionTimestamp")


def is_terminating(pod: Object) -> bool:
    """Whether it is being deleted and has not finished."""
    return pod_phase(pod) not in FINISHED and bool(pod["metadata"].get("deletionTimestamp"))


def pod_phase(pod: Object) -> str:
    """The phase in its status; empty if it has none yet."""
    return str((pod.get("status") or {}).get("phase", ""))


def condition_of(obj: Object, kind: str) -> Mapping[str, Any]:
    """The condition of a type; empty if the pod does not have it."""
    found: Mapping[str, Any]
    for found in (obj.get("status") or {}).get("conditions") or ():
        if found["type"] == kind:
            return found
    return {}


def is_ready(pod: Object) -> bool:
    """Whether its condition Ready is True."""
    return condition_of(pod, "Ready").get("status") == "True"


def seconds_until_available(pod: Object, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until it has been ready for ``minReadySeconds``: 0 if it has, None if it is not ready."""
    found = condition_of(pod, "Ready")
    if found.get("status") != "True":
        return None
    since = found.get("lastTransitionTime")
    if not min_ready_seconds or not since:
        return 0.0
    return max(0.0, unix_seconds(since) + min_ready_seconds - now)


def owner_reference(owner: Object, api_version: str, kind: str) -> Object:
    """The owner reference that makes ``owner`` the controller of an object."""
    metadata = owner["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(template: Object, owner: Object, api_version: str, kind: str) -> Object:
    """A new pod from a workload's template; the server generates its name unless the caller sets one."""
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{owner['metadata']['name']}-",
            "namespace": owner["metadata"]["namespace"],
            "labels": dict(metadata.get("labels") or {}),
            "annotations": dict(metadata.get("annotations") or {}),
            "finalizers": list(metadata.get("finalizers") or ()),
            "ownerReferences": [owner_reference(owner, api_version, kind)],
        },
        "spec": copy.deepcopy(template["spec"]),
    }


def pods_to_delete(pods: Sequence[Object], count: int, now: float, related: Iterable[Object] = ()) -> list[Object]:
    """The ``count`` pods to delete first (``ActivePodsWithRanks``). Nodes with many ``related`` pods come first."""
    crowd: dict[str, int] = {}
    for pod in related or pods:
        if is_active(pod):
            node = pod["spec"].get("nodeName", "")
            crowd[node] = crowd.get(node, 0) + 1
    return sorted(pods, key=lambda pod: _deletion_rank(pod, crowd, now))[:count]


def _deletion_cost(metadata: Mapping[str, Any]) -> int:
    """The pod-deletion-cost annotation; 0 if it is absent or no number."""
    said = (metadata.get("annotations") or {}).get("controller.kubernetes.io/pod-deletion-cost", "")
    try:
        return int(said)
    except ValueError:
        return 0


def _deletion_rank(pod: Object, crowd: Mapping[str, int], now: float) -> tuple[Any, ...]:
    """Lower ranks are deleted first."""
    metadata = pod["metadata"]
    node = pod["spec"].get("nodeName", "")
    since = condition_of(pod, "Ready").get("lastTransitionTime") if is_ready(pod) else None
    return (
        bool(node),
        {"Pending": 0, "Unknown": 1, "Running": 2}.get(pod_phase(pod), 0),
        is_ready(pod),
        _deletion_cost(metadata),
        -crowd.get(node, 0),
        -(unix_seconds(since) if since else now),
        -max(
            (one.get("restartCount", 0) for one in (pod.get("status") or {}).get("containerStatuses") or ()), default=0
        ),
        -unix_seconds(metadata["creationTimestamp"]),
        metadata["name"],
    )
