"""Volumes, claims, classes and attachments."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.tables.cell_text import NONE, UNSET, Printer, age_text, name_of, spec_of, status_of
from lastcall_lab.apiserver.values.request import Object

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def volume_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a persistent volume."""
    spec, status = spec_of(obj), status_of(obj)
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        _size(spec.get("capacity")),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason", ""),
        age_text(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def claim_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a persistent volume claim; capacity and modes appear once it is bound."""
    spec, status = spec_of(obj), status_of(obj)
    bound = bool(spec.get("volumeName"))
    return [
        name_of(obj),
        _phase(obj),
        spec.get("volumeName", ""),
        _size(status.get("capacity")) if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        _class(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        age_text(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def storage_class_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a storage class."""
    annotations = obj["metadata"].get("annotations") or {}
    default = any(annotations.get(name) == "true" for name in _DEFAULT)
    return [
        name_of(obj) + (" (default)" if default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age_text(obj, now),
    ]


def attachment_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a volume attachment."""
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool(status_of(obj).get("attached")),
        age_text(obj, now),
    ]


def csi_node_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a CSI node."""
    return [name_of(obj), len(spec_of(obj).get("drivers") or ()), age_text(obj, now)]


def csi_driver_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a CSI driver."""
    spec = spec_of(obj)
    requests = spec.get("tokenRequests")
    return [
        name_of(obj),
        spec.get("attachRequired", True),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else ",".join(one.get("audience", "") for one in requests),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age_text(obj, now),
    ]


def _phase(obj: Object) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else status_of(obj).get("phase", "")


def _size(capacity: Object | None) -> str:
    return str((capacity or {}).get("storage", "0"))


def _modes(modes: Sequence[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _class(obj: Object) -> str:
    said = (obj["metadata"].get("annotations") or {}).get(_CLASS)
    return said if said is not None else spec_of(obj).get("storageClassName") or ""


PRINTERS: Mapping[str, Printer] = {
    "PersistentVolume": volume_cells,
    "PersistentVolumeClaim": claim_cells,
    "StorageClass": storage_class_cells,
    "VolumeAttachment": attachment_cells,
    "CSINode": csi_node_cells,
    "CSIDriver": csi_driver_cells,
}
