"""Makes volumes for claims and removes those that nobody claims any more (``kubernetes-csi/external-provisioner``)."""

from collections.abc import Iterable, Iterator, Sequence

from lastcall.lab.controllers import finalizers
from lastcall.lab.controllers import volume_match as match
from lastcall.lab.controllers.actions import Action, Create, Decision, Delete, Tell, Work
from lastcall.lab.controllers.view import Object, Ref, View, ref
from lastcall.lab.volumes import DRIVER
from lastcall.lab.volumes.storage import Storage

FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
"""Keeps a volume's object until the volume itself is removed (KEP-2644)."""


class Provisioner:
    """Looks at claims that its driver is asked for, and at its volumes."""

    name = "csi-provisioner"
    resources: Sequence[str] = (match.CLAIMS, match.VOLUMES, match.CLASSES, match.ATTACHMENTS)

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """Claims and volumes themselves; the volume of an attachment; the claims of a class."""
        if resource in (match.CLAIMS, match.VOLUMES):
            return [ref(resource, obj)]
        if resource == match.ATTACHMENTS:
            return [Ref(match.VOLUMES, "", obj["spec"]["source"].get("persistentVolumeName", ""))]
        name = obj["metadata"]["name"]
        return [ref(match.CLAIMS, one) for one in view.all(match.CLAIMS) if one["spec"].get("storageClassName") == name]

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """A new volume, or the end of one."""
        obj = view.get(*key)
        if obj is None:
            return Decision()
        actions = self._claim(key, obj, view) if key.resource == match.CLAIMS else self._volume(key, obj, view)
        return Decision(tuple(actions))

    def _claim(self, key: Ref, claim: Object, view: View) -> Iterator[Action]:
        metadata, found = claim["metadata"], match.storage_class(claim, view)
        name = f"pvc-{metadata['uid']}"
        asked = found and found["provisioner"] == DRIVER and match.annotation(claim, match.PROVISIONER) == DRIVER
        if found is None or not asked or claim["spec"].get("volumeName") or metadata.get("deletionTimestamp"):
            return
        waits = match.delayed(claim, view) and not match.annotation(claim, match.SELECTED_NODE)
        if waits or view.get(match.VOLUMES, "", name):
            return
        doing = f'External provisioner is provisioning volume for claim "{key.namespace}/{key.name}"'
        yield _told(key, claim, "Provisioning", doing)
        yield Work(self._storage.make, (name,))
        yield Create(match.VOLUMES, "", _volume(name, claim, found))
        yield _told(key, claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    def _volume(self, key: Ref, volume: Object, view: View) -> Iterator[Action]:
        spec, metadata = volume["spec"], volume["metadata"]
        if match.annotation(volume, match.PROVISIONED_BY) != DRIVER or not spec.get("csi"):
            return
        deleted = bool(metadata.get("deletionTimestamp"))
        if spec.get("persistentVolumeReclaimPolicy") != "Delete":
            yield from finalizers.remove(match.VOLUMES, volume, FINALIZER) if deleted else ()
        elif (volume.get("status") or {}).get("phase") == "Released" and not _attached(key.name, view):
            if not deleted:
                yield Delete(key, uid=metadata["uid"])
            elif last := finalizers.remove(match.VOLUMES, volume, FINALIZER):
                yield Work(self._storage.remove, (spec["csi"]["volumeHandle"],))
                yield from last


def _attached(name: str, view: View) -> bool:
    return any(one["spec"]["source"].get("persistentVolumeName") == name for one in view.all(match.ATTACHMENTS))


def _volume(name: str, claim: Object, storage_class: Object) -> Object:
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
            "claimRef": match.reference(claim),
            "csi": {"driver": DRIVER, "volumeHandle": name, "fsType": "ext4"},
        },
    }


def _told(key: Ref, claim: Object, reason: str, message: str) -> Tell:
    return Tell(key, claim["metadata"]["uid"], "PersistentVolumeClaim", "v1", reason, message, source=DRIVER)
