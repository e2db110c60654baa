"""Matches volumes with claims (pure): ``pkg/controller/volume/persistentvolume``."""

from collections.abc import Collection, Iterator
from typing import Any

from lastcall.model import quantities
from lastcall.model.label_selector import selector_matcher
from lastcall_lab.controllers.framework.view import Object, View
from lastcall_lab.controllers.objects import node_affinity

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
CLASSES = "storageclasses.storage.k8s.io"
ATTACHMENTS = "volumeattachments.storage.k8s.io"

SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
OLD_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def annotation_of(obj: Object, name: str) -> str:
    """The annotation's value; empty if absent."""
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))


def is_bound(claim: Object) -> bool:
    """Whether the binding is complete (``IsPVCFullyBound``, as in the scheduler)."""
    return bool(claim["spec"].get("volumeName")) and bool(annotation_of(claim, BIND_COMPLETED))


def storage_class_of(claim: Object, view: View) -> Object | None:
    """The StorageClass of a claim; None if the claim names none or it does not exist."""
    return view.get(CLASSES, "", claim["spec"].get("storageClassName") or "")


def is_binding_delayed(claim: Object, view: View) -> bool:
    """Whether binding waits for the first consumer to be scheduled."""
    found = storage_class_of(claim, view)
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def is_multi_attach(volume: Object) -> bool:
    """Whether the volume can be attached to several nodes at once (``IsMultiAttachAllowed``)."""
    modes = volume["spec"].get("accessModes") or ()
    return not modes or "ReadWriteMany" in modes or "ReadOnlyMany" in modes


def unsuitable_reason(volume: Object, claim: Object) -> str:
    """Why a volume does not satisfy a claim (``checkVolumeSatisfyClaim``); empty if it does."""
    has, wants = volume["spec"], claim["spec"]
    if volume["metadata"].get("deletionTimestamp"):
        return f'the volume is marked for deletion "{volume["metadata"]["name"]}"'
    if _storage_amount(has.get("capacity")) < _storage_amount(wants["resources"].get("requests")):
        return "requested PV is too small"
    if (has.get("storageClassName") or "") != (wants.get("storageClassName") or ""):
        return "storageClassName does not match"
    if has.get("volumeMode", "Filesystem") != wants.get("volumeMode", "Filesystem"):
        return "incompatible volumeMode"
    if not set(wants.get("accessModes") or ()) <= set(has.get("accessModes") or ()):
        return "incompatible accessMode"
    return ""


def best_volume(
    claim: Object, view: View, *, node: Object | None = None, without: Collection[str] = ()
) -> Object | None:
    """The volume reserved for the claim, or the smallest free one that fits; None if there is none.

    With a node, the volume must be accessible from it.
    """
    found = list(_candidate_volumes(claim, view))
    kept = [volume for volume in found if volume["spec"].get("claimRef")]
    if kept:
        return kept[0]
    reachable = [volume for volume in found if node is None or _is_reachable_from(volume, node)]
    free = [volume for volume in reachable if volume["metadata"]["name"] not in without]
    return min(free, key=lambda volume: _storage_amount(volume["spec"].get("capacity")), default=None)


def refers_to_claim(volume: Object, claim: Object) -> bool:
    """Whether the volume is reserved for the claim, bound or not."""
    reference, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    if not reference:
        return False
    same = (reference.get("namespace"), reference.get("name")) == (metadata["namespace"], metadata["name"])
    return same and reference.get("uid") in (None, "", metadata["uid"])


def claim_reference(claim: Object) -> dict[str, Any]:
    """The ``claimRef`` of a volume for the claim."""
    metadata = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }


def _candidate_volumes(claim: Object, view: View) -> Iterator[Object]:
    selector = claim["spec"].get("selector")
    selected = selector_matcher(selector) if selector is not None else None
    for volume in view.all(VOLUMES):
        if unsuitable_reason(volume, claim):
            continue
        if volume["spec"].get("claimRef"):
            if refers_to_claim(volume, claim):
                yield volume
        elif (volume.get("status") or {}).get("phase") == "Available" and (
            selected is None or selected(volume["metadata"].get("labels") or {})
        ):
            yield volume


def _is_reachable_from(volume: Object, node: Object) -> bool:
    affinity = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return affinity is None or node_affinity.matches_node_selector(affinity, node)


def _storage_amount(amounts: Object | None) -> Any:
    return quantities.parse_quantity(str((amounts or {}).get("storage", "0")))
