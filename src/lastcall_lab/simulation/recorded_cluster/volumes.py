"""The volumes of a cluster, as volumes of the lab's own driver: attached and detached by its rules (pure)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from lastcall.model.pods import FINISHED
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object
from lastcall_lab.controllers.volumes import volume_matching as match
from lastcall_lab.simulation.recorded_cluster.completion import attachment_name, uid_for
from lastcall_lab.volumes import DRIVER
from lastcall_lab.volumes.attacher import FINALIZER as ATTACHED
from lastcall_lab.volumes.provisioner import FINALIZER as PROVISIONED

_KEPT_FINALIZERS = ("kubernetes.io/pv-protection", PROVISIONED)
_STAY = ("local", "hostPath")
_DISKS = (
    "csi",
    "awsElasticBlockStore",
    "azureDisk",
    "cinder",
    "gcePersistentDisk",
    "portworxVolume",
    "rbd",
    "vsphereVolume",
)
"""Kinds of volumes that are attached to a machine; the others are file systems that every machine reaches."""
_SPEC = ("accessModes", "capacity", "claimRef", "nodeAffinity", "persistentVolumeReclaimPolicy", "storageClassName")
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_NAMED_BY = (match.PROVISIONER, match.OLD_PROVISIONER, match.PROVISIONED_BY)


def translate_storage(objects: Sequence[Object], at: float, remarks: Counter[str]) -> list[Object]:
    """All objects, with what belongs to storage as the lab's driver has it. What pods name and is not there is made."""
    found = [*objects, *_missing_objects(objects, at, remarks)]
    attached = _attached_volumes(found)
    drivers = _attaching_drivers(found)
    for obj in found:
        annotations = obj["metadata"].get("annotations") or {}
        annotations |= {name: DRIVER for name in _NAMED_BY if name in annotations}
        if obj["kind"] == "StorageClass" and obj["provisioner"] != _NO_PROVISIONER:
            obj["provisioner"] = DRIVER
            obj.pop("parameters", None)
        elif obj["kind"] == "PersistentVolume":
            _translate_volume(obj, drivers, remarks)
    kept = [one for one in found if one["kind"] != "VolumeAttachment"]
    return [*kept, *_new_attachments(kept, attached, at)]


# -- what is missing ---------------------------------------------------------------------------------------------------


def _missing_objects(objects: Sequence[Object], at: float, remarks: Counter[str]) -> Iterator[Object]:
    """The claims that pods name, the volumes that claims name, the classes that either names."""
    there = {(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in objects}
    claims = [one for one in objects if one["kind"] == "PersistentVolumeClaim"]
    for pod in objects:
        for name in claim_names(pod):
            key = ("PersistentVolumeClaim", pod["metadata"]["namespace"], name)
            if key not in there and pod["spec"].get("nodeName"):
                there.add(key)
                remarks["claims that are not in the file (each counts as a disk of one machine at a time)"] += 1
                claims.append(made := _new_claim(key[1], name, at))
                yield made
    for claim in claims:
        name = claim["spec"].get("volumeName", "")
        if name and ("PersistentVolume", "", name) not in there:
            there.add(("PersistentVolume", "", name))
            yield _new_volume(claim, at)
    named = [one for obj in objects for one in _storage_classes(obj)] + [
        one for obj in claims for one in _storage_classes(obj)
    ]
    for name in dict.fromkeys(filter(None, named)):
        if ("StorageClass", "", name) not in there:
            yield _new_storage_class(name, at)


def claim_names(obj: Object) -> list[str]:
    """The claims that a pod names."""
    volumes = obj["spec"].get("volumes") or () if obj["kind"] == "Pod" else ()
    return [one["persistentVolumeClaim"]["claimName"] for one in volumes if "persistentVolumeClaim" in one]


def _storage_classes(obj: Object) -> Iterator[str]:
    if obj["kind"] in ("PersistentVolume", "PersistentVolumeClaim"):
        yield obj["spec"].get("storageClassName") or ""
    if obj["kind"] == "StatefulSet":
        yield from (one["spec"].get("storageClassName") or "" for one in obj["spec"].get("volumeClaimTemplates") or ())


def _new_claim(namespace: str, name: str, at: float) -> Object:
    uid = uid_for("PersistentVolumeClaim", namespace, name)
    made = {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": object_meta.timestamp(at)}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "volumeName": f"pvc-{uid}",
    }
    metadata = {**made, "annotations": {match.BIND_COMPLETED: "yes"}, "finalizers": ["kubernetes.io/pvc-protection"]}
    status = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": {"storage": "1Gi"}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}


def _new_volume(claim: Object, at: float) -> Object:
    """The volume that a bound claim names."""
    name, own, wanted = claim["spec"]["volumeName"], claim["metadata"], claim["spec"]
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    spec = {
        "accessModes": wanted.get("accessModes") or ["ReadWriteOnce"],
        "capacity": (claim.get("status") or {}).get("capacity") or wanted["resources"]["requests"],
        "claimRef": {**reference, **{part: own[part] for part in ("namespace", "name", "uid")}},
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": wanted.get("storageClassName") or "",
        "volumeMode": wanted.get("volumeMode", "Filesystem"),
    }
    metadata = {"name": name, "uid": uid_for("PersistentVolume", name), "creationTimestamp": object_meta.timestamp(at)}
    metadata |= {"finalizers": ["kubernetes.io/pv-protection"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Bound"},
    }


def _new_storage_class(name: str, at: float) -> Object:
    metadata = {"name": name, "uid": uid_for("StorageClass", name), "creationTimestamp": object_meta.timestamp(at)}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": metadata,
        "provisioner": DRIVER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


# -- volumes -----------------------------------------------------------------------------------------------------------


def _attaching_drivers(objects: Iterable[Object]) -> set[str] | None:
    """The drivers that attach volumes; None if the file does not say."""
    found = {one["spec"]["attacher"] for one in objects if one["kind"] == "VolumeAttachment"}
    return found or None


def _translate_volume(volume: Object, drivers: set[str] | None, remarks: Counter[str]) -> None:
    """Its handle is its own name, which every storage can have."""
    spec, metadata = volume["spec"], volume["metadata"]
    finalizers = [one for one in metadata.pop("finalizers", ()) if one in _KEPT_FINALIZERS]
    kept = {field: spec[field] for field in (*_SPEC, *_STAY) if field in spec}
    if not any(kind in spec for kind in _STAY):
        if _is_attached(spec, drivers):
            kept["csi"] = {"driver": DRIVER, "volumeHandle": metadata["name"]}
            finalizers.append(ATTACHED)
        else:
            kept["hostPath"] = {"path": f"/volumes/{metadata['name']}", "type": ""}
            remarks["volumes that no driver attaches (every machine counts as reaching them)"] += 1
    if finalizers:
        metadata["finalizers"] = finalizers
    volume["spec"] = {**kept, "volumeMode": "Filesystem"}


def _is_attached(spec: Object, drivers: set[str] | None) -> bool:
    if "csi" not in spec:
        return any(kind in spec for kind in _DISKS)
    driver = spec["csi"]["driver"]
    if drivers is not None:
        return driver in drivers or driver == DRIVER
    return "ReadWriteMany" not in (spec.get("accessModes") or ())


# -- what is attached where --------------------------------------------------------------------------------------------


def _attached_volumes(objects: Sequence[Object]) -> set[tuple[str, str]]:
    """Volumes, by name, and the nodes at which they are: by attachments, and by the pods that run with them."""
    found = {
        (one["spec"]["source"].get("persistentVolumeName") or "", one["spec"]["nodeName"])
        for one in objects
        if one["kind"] == "VolumeAttachment" and (one.get("status") or {}).get("attached")
    }
    volumes = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): one["spec"].get("volumeName", "")
        for one in objects
        if one["kind"] == "PersistentVolumeClaim"
    }
    for pod in objects:
        phase = (pod.get("status") or {}).get("phase")
        for name in claim_names(pod) if pod["kind"] == "Pod" and phase not in FINISHED else ():
            volume = volumes.get((pod["metadata"]["namespace"], name), "")
            if volume and pod["spec"].get("nodeName") and phase == "Running":
                found.add((volume, pod["spec"]["nodeName"]))
    return found


def _new_attachments(objects: Sequence[Object], attached: set[tuple[str, str]], at: float) -> Iterator[Object]:
    """Of volumes and nodes that are there; the nodes say so too."""
    volumes = {one["metadata"]["name"] for one in objects if one["kind"] == "PersistentVolume" and "csi" in one["spec"]}
    nodes = {one["metadata"]["name"]: one for one in objects if one["kind"] == "Node"}
    for node in nodes.values():
        node.setdefault("status", {}).pop("volumesAttached", None)
        node["status"].pop("volumesInUse", None)
    for volume, node_name in sorted(attached):
        if volume not in volumes or node_name not in nodes:
            continue
        status = nodes[node_name]["status"]
        unique = f"kubernetes.io/csi/{DRIVER}^{volume}"
        status.setdefault("volumesAttached", []).append({"name": unique, "devicePath": ""})
        status.setdefault("volumesInUse", []).append(unique)
        name = attachment_name(DRIVER, volume, node_name)
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {
                "name": name,
                "uid": uid_for("VolumeAttachment", name),
                "creationTimestamp": object_meta.timestamp(at),
                "finalizers": [ATTACHED],
            },
            "spec": {"attacher": DRIVER, "nodeName": node_name, "source": {"persistentVolumeName": volume}},
            "status": {"attached": True},
        }
