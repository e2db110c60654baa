"""Creates volumes for claims and deletes released ones (``kubernetes-csi/external-provisioner``)."""

from collections.abc import Iterable, Iterator, Sequence

from lastcall_lab.controllers.framework.actions import (
    Action,
    CreateObject,
    Decision,
    DeleteObject,
    RecordEvent,
    RunWork,
)
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of
from lastcall_lab.controllers.objects import finalizers
from lastcall_lab.controllers.volumes import volume_matching as match
from lastcall_lab.volumes import DRIVER
from lastcall_lab.volumes.storage import Storage

FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
"""Finalizer that keeps a volume's object until the volume itself is deleted (KEP-2644)."""


class Provisioner:
    """Handles the claims for its driver, and its volumes."""

    name = "csi-provisioner"
    resources: Sequence[str] = (match.CLAIMS, match.VOLUMES, match.CLASSES, match.ATTACHMENTS)

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """Claims and volumes themselves; the volume of an attachment; the claims of a class."""
        if resource in (match.CLAIMS, match.VOLUMES):
            return [ref_of(resource, obj)]
        if resource == match.ATTACHMENTS:
            return [ObjectRef(match.VOLUMES, "", obj["spec"]["source"].get("persistentVolumeName", ""))]
        name = obj["metadata"]["name"]
        return [
            ref_of(match.CLAIMS, one) for one in view.all(match.CLAIMS) if one["spec"].get("storageClassName") == name
        ]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Creates a volume, or deletes one."""
        obj = view.get(*key)
        if obj is None:
            return Decision()
        actions = (
            self._provision_claim(key, obj, view)
            if key.resource == match.CLAIMS
            else self._reclaim_volume(key, obj, view)
        )
        return Decision(tuple(actions))

    def _provision_claim(self, key: ObjectRef, claim: Object, view: View) -> Iterator[Action]:
        metadata, found = claim["metadata"], match.storage_class_of(claim, view)
        name = f"pvc-{metadata['uid']}"
        asked = found and found["provisioner"] == DRIVER and match.annotation_of(claim, match.PROVISIONER) == DRIVER
        if found is None or not asked or claim["spec"].get("volumeName") or metadata.get("deletionTimestamp"):
            return
        waits = match.is_binding_delayed(claim, view) and not match.annotation_of(claim, match.SELECTED_NODE)
        if waits or view.get(match.VOLUMES, "", name):
            return
        doing = f'External provisioner is provisioning volume for claim "{key.namespace}/{key.name}"'
        yield _claim_event(key, claim, "Provisioning", doing)
        yield RunWork(self._storage.make, (name,))
        yield CreateObject(match.VOLUMES, "", _new_volume(name, claim, found))
        yield _claim_event(key, claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    def _reclaim_volume(self, key: ObjectRef, volume: Object, view: View) -> Iterator[Action]:
        spec, metadata = volume["spec"], volume["metadata"]
        if match.annotation_of(volume, match.PROVISIONED_BY) != DRIVER or not spec.get("csi"):
            return
        deleted = bool(metadata.get("deletionTimestamp"))
        if spec.get("persistentVolumeReclaimPolicy") != "Delete":
            yield from finalizers.remove_finalizer(match.VOLUMES, volume, FINALIZER) if deleted else ()
        elif (volume.get("status") or {}).get("phase") == "Released" and not _is_attached(key.name, view):
            if not deleted:
                yield DeleteObject(key, uid=metadata["uid"])
            elif last := finalizers.remove_finalizer(match.VOLUMES, volume, FINALIZER):
                yield RunWork(self._storage.remove, (spec["csi"]["volumeHandle"],))
                yield from last


def _is_attached(name: str, view: View) -> bool:
    return any(one["spec"]["source"].get("persistentVolumeName") == name for one in view.all(match.ATTACHMENTS))


def _new_volume(name: str, claim: Object, storage_class: Object) -> Object:
    policy = storage_class.get("reclaimPolicy", "Delete")
    return {
        "metadata": {
            "name": name,
            "annotations": {match.PROVISIONED_BY: DRIVER},
            "finalizers": [FINALIZER] if policy == "Delete" else [],
        },
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
            "storageClassName": storage_class["metadata"]["name"],
            "persistentVolumeReclaimPolicy": policy,
            "claimRef": match.claim_reference(claim),
            "csi": {"driver": DRIVER, "volumeHandle": name, "fsType": "ext4"},
        },
    }


def _claim_event(key: ObjectRef, claim: Object, reason: str, message: str) -> RecordEvent:
    return RecordEvent(key, claim["metadata"]["uid"], "PersistentVolumeClaim", "v1", reason, message, source=DRIVER)
