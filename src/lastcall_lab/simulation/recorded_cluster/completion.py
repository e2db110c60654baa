"""What a file of kubectl's does not have and the API server of a running cluster would (pure)."""

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lastcall.model.pods import SYSTEM_CLASSES
from lastcall_lab.apiserver.kinds import namespaces
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object
from lastcall_lab.controllers.framework.view import controller_of
from lastcall_lab.controllers.workloads import revision_history, stateful_sets

_EPOCH = 1_800_000_000.0
_TIMES = (
    "creationTimestamp",
    "lastHeartbeatTime",
    "lastTransitionTime",
    "startedAt",
    "finishedAt",
    "startTime",
    "time",
)


def uid_for(*words: str) -> str:
    """The same for the same words."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(words)))


def snapshot_time(objects: Iterable[Object]) -> float:
    """When the file was written: the newest time that any object tells, in seconds since 1970."""
    newest = max((time for obj in objects for time in _timestamps(obj)), default="")
    return object_meta.parse_seconds(newest) if newest else _EPOCH


def _timestamps(obj: Object) -> Iterator[str]:
    metadata, status = obj["metadata"], obj.get("status") or {}
    places: list[Any] = [metadata, *(metadata.get("managedFields") or ()), status, *(status.get("conditions") or ())]
    states = [one.get("state") or {} for one in status.get("containerStatuses") or ()]
    for place in (*places, *(part for state in states for part in state.values())):
        yield from (place[name] for name in _TIMES if place.get(name))


def complete_metadata(obj: Object, at: float) -> None:
    """Its metadata as the store keeps it; a uid and a time for an object that has none."""
    metadata = obj["metadata"]
    for name in ("managedFields", "resourceVersion", "selfLink"):
        metadata.pop(name, None)
    if not metadata.get("uid"):
        metadata["uid"] = uid_for(obj["kind"], metadata.get("namespace", ""), metadata["name"])
    if not metadata.get("creationTimestamp"):
        metadata["creationTimestamp"] = object_meta.timestamp(at)
    object_meta.drop_empty_fields(obj)


def drop_dangling_owners(objects: Sequence[Object]) -> list[Object]:
    """Takes references to owners out that are not in the file, or the garbage collector would delete what they own.

    The pods that have lost their controller come back: nobody replaces them.
    """
    known = {one["metadata"]["uid"] for one in objects}
    bare = []
    for obj in objects:
        owners = obj["metadata"].get("ownerReferences")
        kept = [owner for owner in owners or () if owner["uid"] in known]
        if owners and len(kept) < len(owners):
            if obj["kind"] == "Pod" and (controller_of(obj) or {}).get("uid") not in known:
                bare.append(obj)
            obj["metadata"]["ownerReferences"] = kept
            object_meta.drop_empty_fields(obj)
    return bare


def namespaces_of(objects: Iterable[Object], at: float) -> Iterator[Object]:
    """Those that are not in the file."""
    there = {one["metadata"]["name"] for one in objects if one["kind"] == "Namespace"}
    named = {one["metadata"]["namespace"] for one in objects if one["metadata"].get("namespace")}
    for name in sorted(named - there - set(namespaces.INITIAL)):
        made = namespaces.initial_namespace(name, uid=uid_for("Namespace", name), wall=at)
        yield {"apiVersion": "v1", "kind": "Namespace", **made}


def classes_of(objects: Iterable[Object], at: float) -> Iterator[Object]:
    """The priority classes that pods and templates name; their value is that of a pod which has it, else 0."""
    there = {one["metadata"]["name"] for one in objects if one["kind"] == "PriorityClass"} | set(SYSTEM_CLASSES)
    values: dict[str, int] = {}
    for obj in objects:
        spec = find_pod_spec(obj) or {}
        name = spec.get("priorityClassName")
        if name and name not in there:
            values[name] = values.get(name) or spec.get("priority") or 0
    for name, value in sorted(values.items()):
        metadata = {"name": name, "uid": uid_for("PriorityClass", name), "creationTimestamp": object_meta.timestamp(at)}
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": metadata,
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority",
        }


def find_pod_spec(obj: Object) -> Object | None:
    """Of a pod, or of the pods that a workload makes."""
    if obj["kind"] == "Pod":
        return obj["spec"]  # type: ignore[no-any-return]  # JSON
    template = (obj.get("spec") or {}).get("template")
    return template["spec"] if isinstance(template, dict) else None


# -- revisions ---------------------------------------------------------------------------------------------------------


def revisions_of(objects: Sequence[Object], at: float) -> Iterator[Object]:
    """The ControllerRevision of each StatefulSet and DaemonSet: without it a controller would make all pods anew.

    It has the name that the pods say. A rollout under way counts as done: what the other template was is not known.
    """
    pods: dict[str, list[Object]] = {}
    for obj in objects:
        if obj["kind"] == "Pod" and (owner := controller_of(obj)):
            pods.setdefault(owner["uid"], []).append(obj)
    for obj in objects:
        if obj["kind"] in ("StatefulSet", "DaemonSet"):
            yield _controller_revision(obj, pods.get(obj["metadata"]["uid"], ()), at)


def _controller_revision(workload: Object, pods: Sequence[Object], at: float) -> Object:
    metadata, template, kind = workload["metadata"], workload["spec"]["template"], workload["kind"]
    said = Counter(pod["metadata"].get("labels", {}).get(revision_history.LABEL, "") for pod in pods)
    del said[""]
    hash_ = said.most_common(1)[0][0] if said else "recorded"
    name, label = f"{metadata['name']}-{hash_}", revision_history.LABEL
    if kind == "StatefulSet":
        name = (workload.get("status") or {}).get("updateRevision") or (hash_ if said else name)
        hash_, label = name, stateful_sets.HASH
        workload["status"] = {**(workload.get("status") or {}), "currentRevision": name, "updateRevision": name}
    for pod in pods:
        pod["metadata"].setdefault("labels", {})[revision_history.LABEL] = hash_
    labels = (template.get("metadata") or {}).get("labels") or {}
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "uid": uid_for("ControllerRevision", metadata["uid"]),
            "creationTimestamp": object_meta.timestamp(at),
            "labels": {**labels, label: name.rpartition("-")[2] if kind == "StatefulSet" else hash_},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "data": revision_history.data_of(workload),
        "revision": 1,
    }


def attachment_name(driver: str, handle: str, node: str) -> str:
    """As Kubernetes names a VolumeAttachment (``getAttachmentName`` of the CSI plugin)."""
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node}'.encode()).hexdigest()}"
