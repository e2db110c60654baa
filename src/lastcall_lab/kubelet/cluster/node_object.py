"""The objects that a kubelet writes about its node: the Node, its status and its Lease (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lastcall import names
from lastcall.adapters.kube.resources import Object
from lastcall_lab.apiserver.values.object_meta import micro_timestamp, parse_seconds, timestamp
from lastcall_lab.kubelet.base.settings import NodeProfile
from lastcall_lab.machines import identifiers

VERSION = "v1.36.2+lastcall-lab"
LEASE_NAMESPACE = "kube-node-lease"


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """The inputs of a node's status. ``runtime_fault`` says why the runtime is not ready; empty if it is ready.

    ``volumes_in_use`` are the unique names of the attachable volumes that this node's pods use or are about to use.
    """

    going_down: bool = False
    runtime_fault: str = ""
    volumes_in_use: Sequence[str] = ()
    images: Sequence[str] = ()


def new_node(profile: NodeProfile, facts: NodeFacts, now: float) -> Object:
    """The Node as it registers (``kubelet_node_status.go: initialNode``); ``now`` in seconds since 1970."""
    spec: Object = {"taints": [dict(taint) for taint in profile.taints]} if profile.taints else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": profile.name,
            "labels": node_labels(profile),
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": spec,
        "status": node_status(profile, facts, {}, now),
    }


def node_labels(profile: NodeProfile) -> dict[str, str]:
    """The labels that a kubelet reconciles, and those of the profile."""
    return {
        "beta.kubernetes.io/arch": profile.architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": profile.architecture,
        "kubernetes.io/hostname": profile.name,
        "kubernetes.io/os": "linux",
        **profile.labels,
    }


def node_status(profile: NodeProfile, facts: NodeFacts, old: Mapping[str, Any], now: float) -> Object:
    """The kubelet's part of a node's status, after ``old`` (``pkg/kubelet/nodestatus/setters.go``)."""
    return {
        "addresses": [
            {"type": "InternalIP", "address": profile.address},
            {"type": "Hostname", "address": profile.name},
        ],
        "capacity": dict(profile.capacity),
        "allocatable": dict(profile.capacity),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _node_info(profile),
        "conditions": list(_node_conditions(facts, old, now)),
        "images": [{"names": [image]} for image in facts.images],
        "volumesInUse": sorted(facts.volumes_in_use),
    }


def _node_info(profile: NodeProfile) -> Object:
    return {
        "machineID": identifiers.machine_id(profile.name),
        "systemUUID": identifiers.system_uuid(profile.name),
        "bootID": profile.boot_id,
        "kernelVersion": profile.kernel,
        "osImage": profile.os_image,
        "containerRuntimeVersion": profile.runtime,
        "kubeletVersion": VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": profile.architecture,
    }


def _node_conditions(facts: NodeFacts, old: Mapping[str, Any], now: float) -> Iterator[Object]:
    """Each condition keeps its last transition time while its status stays the same."""
    before = {one["type"]: one for one in old.get("conditions") or ()}
    for kind, (said, reason, message) in _condition_values(facts).items():
        known = before.get(kind, {})
        since = known.get("lastTransitionTime") if known.get("status") == said else None
        yield {
            "type": kind,
            "status": said,
            "lastHeartbeatTime": timestamp(now),
            "lastTransitionTime": since or timestamp(now),
            "reason": reason,
            "message": message,
        }


def _condition_values(facts: NodeFacts) -> Mapping[str, tuple[str, str, str]]:
    """The lab's nodes are never under memory, disk or PID pressure."""
    faults = [facts.runtime_fault, names.NOT_READY_MESSAGE if facts.going_down else ""]
    found = [fault for fault in faults if fault]
    ready = ("True", names.READY_REASON, "kubelet is posting ready status")
    if found:
        ready = ("False", names.NOT_READY_REASON, found[0] if len(found) == 1 else f"[{', '.join(found)}]")
    return {
        "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        names.READY: ready,
    }


def has_status_changed(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether two statuses differ apart from their heartbeat times (``nodeStatusHasChanged``)."""
    return any(_without_times(name, value) != _without_times(name, old.get(name)) for name, value in new.items())


def _without_times(name: str, value: Any) -> Any:
    if name != "conditions":
        return value or None
    kept = ("status", "reason", "message")
    return {one["type"]: tuple(one.get(field) for field in kept) for one in value or ()}


def status_patch(new: Mapping[str, Any], old: Mapping[str, Any]) -> Object:
    """A strategic merge patch that keeps the conditions of other writers. Replaces images and lists without keys."""
    body = {name: value for name, value in new.items() if value or old.get(name)}
    return {"status": {**body, "images": [{"$patch": "replace"}, *new["images"]]} if body.get("images") else body}


def labels_patch(known: Object, profile: NodeProfile) -> Object | None:
    """The patch that corrects the labels of an existing node; None if they are correct."""
    wanted, found = node_labels(profile), known["metadata"].get("labels") or {}
    missing = {name: value for name, value in wanted.items() if found.get(name) != value}
    return {"metadata": {"labels": missing}} if missing else None


def new_lease(profile: NodeProfile, owner_uid: str, duration: int, wall: float) -> Object:
    """The Lease of the heartbeat, owned by its Node and deleted with it (``pkg/kubelet/util/nodelease.go``)."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": profile.name, "uid": owner_uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": profile.name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": profile.name,
            "leaseDurationSeconds": duration,
            "renewTime": micro_timestamp(wall),
        },
    }


def status_events(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The node's events about a changed status: type and reason (``recordNodeStatusEvent``)."""
    before = {one["type"]: one["status"] for one in old.get("conditions") or ()}
    reasons = {
        "MemoryPressure": {"False": "NodeHasSufficientMemory", "True": "NodeHasInsufficientMemory"},
        "DiskPressure": {"False": "NodeHasNoDiskPressure", "True": "NodeHasDiskPressure"},
        "PIDPressure": {"False": "NodeHasSufficientPID", "True": "NodeHasInsufficientPID"},
        names.READY: {"True": "NodeReady", "False": "NodeNotReady"},
    }
    for one in new["conditions"]:
        if before.get(one["type"]) != one["status"]:
            yield "Normal", reasons[one["type"]][one["status"]]


def heartbeat_age(known: Mapping[str, Any], now: float) -> float:
    """Seconds since the last write of the status; ``inf`` if it was never written."""
    times = [
        parse_seconds(one["lastHeartbeatTime"]) for one in known.get("conditions") or () if one.get("lastHeartbeatTime")
    ]
    return now - max(times) if times else float("inf")
