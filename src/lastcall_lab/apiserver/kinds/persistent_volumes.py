"""PersistentVolumes and PersistentVolumeClaims (``pkg/apis/core``).

Admission adds the protection finalizers (``StorageObjectInUseProtection``). Controllers write the phases and the
binding.
"""

import posixpath
from collections.abc import Iterable, Iterator

from lastcall.model import name_rules, quantities
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.internal_objects import internal_fields, to_internal, unified_diff
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.kinds.pod_scheduling_rules import validate_node_selector
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_POLICIES = ("Delete", "Recycle", "Retain")
_NOT_SOURCES = (
    "capacity",
    "accessModes",
    "claimRef",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "mountOptions",
    "volumeMode",
    "nodeAffinity",
    "volumeAttributesClassName",
)
_SOURCES = (
    *("gcePersistentDisk", "awsElasticBlockStore", "hostPath", "glusterfs", "nfs", "rbd", "quobyte", "iscsi"),
    *("flexVolume", "cinder", "cephfs", "fc", "flocker", "azureFile", "vsphereVolume", "azureDisk"),
    *("photonPersistentDisk", "portworxVolume", "scaleIO", "local", "storageos", "csi"),
)
_RIGID = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
_RIGID_SOURCE = "spec.persistentvolumesource is immutable after creation"


class PersistentVolumeClaimKind(KindBehaviour):
    """A request for storage."""

    has_status = True
    status_after_delete = False
    status_keeps = ()

    def default(self, obj: Object) -> None:
        """Volume mode Filesystem, phase Pending."""
        set_claim_defaults(obj)

    def prepare_create(self, obj: Object) -> None:
        """Clears the status, and syncs both data source fields (``NormalizeDataSources``)."""
        obj["status"] = {"phase": "Pending"}
        spec = obj["spec"]
        source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
        if source and reference is None:
            kind = (source.get("apiGroup") or "", source.get("kind"))
            if kind in (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")):
                spec["dataSourceRef"] = dict(source)
            else:
                del spec["dataSource"]
        elif reference and not source and not reference.get("namespace"):
            spec["dataSource"] = {name: value for name, value in reference.items() if name != "namespace"}

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidatePersistentVolumeClaim``."""
        return check_claim(obj["spec"], "spec")

    def warnings(self, obj: Object) -> Iterable[str]:
        """Fractional bytes (``GetWarningsForPersistentVolumeClaimSpec``)."""
        for side in ("requests", "limits"):
            text = (obj["spec"]["resources"].get(side) or {}).get("storage")
            if text is not None and quantities.parse_quantity(text).denominator != 1:
                yield f'spec.resources.{side}[storage]: fractional byte value "{text}" is invalid, must be an integer'

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The volume can be set once, and a bound claim may grow (``ValidatePersistentVolumeClaimUpdate``)."""
        yield from self.validate(new)
        after, before = _set(new["spec"]), _set(old["spec"])
        if "volumeName" not in before and "volumeName" in after:
            before["volumeName"] = after["volumeName"]
        bound = (old.get("status") or {}).get("phase") == "Bound"
        if bound:
            after["resources"] = {**after["resources"], "requests": before["resources"].get("requests")}
            after["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
            after = _set(after)
        if after != before:
            known = internal_fields("PersistentVolumeClaim", "spec")
            changes = unified_diff(to_internal(before, known, known), to_internal(after, known, known))
            yield field_errors.forbidden("spec", f"{_RIGID}\n{changes}")
        wanted, had = (one["spec"]["resources"].get("requests", {}).get("storage") for one in (new, old))
        granted = ((old.get("status") or {}).get("capacity") or {}).get("storage")
        if bound and wanted and had and _less(wanted, had) and not (granted and _less(granted, wanted)):
            yield field_errors.forbidden(
                "spec.resources.requests.storage", "field can not be less than status.capacity"
            )


class PersistentVolumeKind(KindBehaviour):
    """A piece of storage."""

    has_status = True
    status_after_delete = False
    status_keeps = ()

    def default(self, obj: Object) -> None:
        """Volume mode Filesystem, reclaim policy Retain."""
        spec = common_rules.fill_missing(
            common_rules.sub_object(obj, "spec"), persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem"
        )
        if spec.get("hostPath") is not None:
            common_rules.fill_missing(spec["hostPath"], type="")
        common_rules.fill_missing(common_rules.sub_object(obj, "status"), phase="Pending")

    def prepare_create(self, obj: Object) -> None:
        """Clears the status."""
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": obj["metadata"]["creationTimestamp"]}

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidatePersistentVolumeSpec``."""
        spec = obj["spec"]
        yield from _check_modes(spec.get("accessModes") or (), "spec.accessModes")
        capacity = spec.get("capacity") or {}
        if not capacity:
            yield field_errors.value_required("spec.capacity")
        if "storage" not in capacity or len(capacity) > 1:
            yield field_errors.not_supported("spec.capacity", capacity or None, ["storage"])
        for name, text in capacity.items():
            if not _positive(text):
                yield field_errors.invalid(f"spec.capacity[{name}]", text, "must be greater than zero")
        yield from common_rules.check_one_of(
            spec["persistentVolumeReclaimPolicy"], "spec.persistentVolumeReclaimPolicy", *_POLICIES
        )
        affinity = spec.get("nodeAffinity")
        if affinity is not None and affinity.get("required") is None:
            yield field_errors.value_required("spec.nodeAffinity.required", "must specify required node constraints")
        elif affinity is not None:
            yield from validate_node_selector(affinity["required"], "spec.nodeAffinity.required")
        yield from _check_source(spec)
        recycled = spec["persistentVolumeReclaimPolicy"] == "Recycle"
        if recycled and posixpath.normpath((spec.get("hostPath") or {}).get("path") or ".") in ("/", "//"):
            why = "may not be 'recycle' for a hostPath mount of '/'"
            yield field_errors.forbidden("spec.persistentVolumeReclaimPolicy", why)
        if (name := spec.get("storageClassName")) and (wrong := name_rules.subdomain_error(name)):
            yield field_errors.invalid("spec.storageClassName", name, wrong)
        yield from common_rules.check_one_of(spec["volumeMode"], "spec.volumeMode", "Block", "Filesystem")

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The volume source is immutable (``ValidatePersistentVolumeUpdate``)."""
        yield from self.validate(new)
        if _source(new["spec"]) != _source(old["spec"]):
            known = internal_fields("PersistentVolume", "spec")
            after, before = (to_internal(_source(one["spec"]), known, _SOURCES) for one in (new, old))
            yield field_errors.forbidden(
                "spec.persistentvolumesource", f"{_RIGID_SOURCE}\n{unified_diff(before, after)}"
            )
        yield from common_rules.check_immutable(new["spec"], old["spec"], "spec", "volumeMode")
        if old["spec"].get("nodeAffinity") is not None:
            yield from common_rules.check_immutable(new["spec"], old["spec"], "spec", "nodeAffinity")


def set_claim_defaults(claim: Object) -> None:
    """Defaults of a claim or of a StatefulSet's claim template."""
    spec = common_rules.fill_missing(common_rules.sub_object(claim, "spec"), volumeMode="Filesystem")
    common_rules.sub_object(spec, "resources")
    common_rules.fill_missing(common_rules.sub_object(claim, "status"), phase="Pending")


def check_claim(spec: Object, path: str) -> Iterator[Cause]:
    """``ValidatePersistentVolumeClaimSpec``."""
    modes = spec.get("accessModes") or ()
    if not modes:
        yield field_errors.value_required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from validate_selector(spec.get("selector"), f"{path}.selector")
    yield from _check_modes(modes, f"{path}.accessModes", needed=False)
    size = (spec["resources"].get("requests") or {}).get("storage")
    if size is None:
        yield field_errors.value_required(f"{path}.resources[storage]")
    elif not _positive(size):
        yield field_errors.invalid(f"{path}.resources[storage]", size, "must be greater than zero")
    name = spec.get("storageClassName")
    if name and (wrong := name_rules.subdomain_error(name)):
        yield field_errors.invalid(f"{path}.storageClassName", name, wrong)
    yield from common_rules.check_one_of(spec["volumeMode"], f"{path}.volumeMode", "Block", "Filesystem")


def _check_modes(modes: Iterable[str], path: str, *, needed: bool = True) -> Iterator[Cause]:
    modes = list(modes)
    if needed and not modes:
        yield field_errors.value_required(path)
    for mode in modes:
        if mode not in _MODES:
            yield field_errors.not_supported(path, mode, _MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield field_errors.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _source(spec: Object) -> Object:
    return {name: value for name, value in spec.items() if name not in _NOT_SOURCES and value is not None}


def _check_source(spec: Object) -> Iterator[Cause]:
    sources = _source(spec)
    if not sources:
        yield field_errors.value_required("spec", "must specify a volume type")
    for name in list(sources)[1:]:
        yield field_errors.forbidden(f"spec.{name}", "may not specify more than 1 volume type")
    if (csi := spec.get("csi")) is not None:
        for name in ("driver", "volumeHandle"):
            if not csi.get(name):
                yield field_errors.value_required(f"spec.csi.{name}")
    for name in ("hostPath", "local"):
        if spec.get(name) is not None and not spec[name].get("path"):
            yield field_errors.value_required(f"spec.{name}.path")
    if spec.get("local") is not None and not spec.get("nodeAffinity"):
        yield field_errors.value_required("spec.nodeAffinity", "Local volume requires node affinity")


def _positive(text: str) -> bool:
    return _less("0", text)


def _less(one: str, other: str) -> bool:
    return quantities.parse_quantity(one) < quantities.parse_quantity(other)


def _set(spec: Object) -> Object:
    return {name: value for name, value in spec.items() if value is not None}
