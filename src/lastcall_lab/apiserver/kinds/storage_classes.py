"""StorageClasses, CSI drivers and nodes, and VolumeAttachments (``pkg/apis/storage``)."""

from collections.abc import Iterable, Iterator

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_ATTACHMENT_METADATA, _VOLUME_ERROR = 256 * 1024, 1024
_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 2**32
_NODE_ID = 256


class StorageClassKind(KindBehaviour):
    """How volumes are provisioned."""

    status_after_delete = False

    def default(self, obj: Object) -> None:
        """Binding mode Immediate, reclaim policy Delete."""
        common_rules.fill_missing(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateStorageClass``."""
        provisioner = obj.get("provisioner") or ""
        if not provisioner:
            yield field_errors.value_required("provisioner")
        elif wrong := name_rules.qualified_name_error(provisioner.lower()):
            yield field_errors.invalid("provisioner", provisioner, wrong)
        for key in obj.get("parameters") or {}:
            if not key:
                yield field_errors.invalid("parameters", key, "field can not be empty.")
        yield from common_rules.check_one_of(obj["reclaimPolicy"], "reclaimPolicy", "Delete", "Retain")
        yield from common_rules.check_one_of(
            obj["volumeBindingMode"], "volumeBindingMode", "Immediate", "WaitForFirstConsumer"
        )

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateStorageClassUpdate``."""
        if (new.get("parameters") or {}) != (old.get("parameters") or {}):
            yield field_errors.invalid("parameters", new.get("parameters"), common_rules.IMMUTABLE)
        yield from common_rules.check_immutable(new, old, "", "provisioner", "reclaimPolicy", "volumeBindingMode")


class CSIDriverKind(KindBehaviour):
    """The capabilities of a driver."""

    needs_revision = True
    status_after_delete = False

    def default(self, obj: Object) -> None:
        """Attach required, no pod info on mount, lifecycle mode Persistent."""
        spec = common_rules.fill_missing(
            common_rules.sub_object(obj, "spec"),
            attachRequired=True,
            podInfoOnMount=False,
            storageCapacity=False,
            fsGroupPolicy="ReadWriteOnceWithFSType",
            requiresRepublish=False,
            seLinuxMount=False,
        )
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateCSIDriver``."""
        yield from _check_driver(obj["metadata"].get("name", ""), "metadata.name")
        spec = obj["spec"]
        policies = ("File", "None", "ReadWriteOnceWithFSType")
        yield from common_rules.check_one_of(spec["fsGroupPolicy"], "spec.fsGroupPolicy", *policies)
        yield from _check_tokens(spec.get("tokenRequests") or ())
        for mode in spec["volumeLifecycleModes"]:
            yield from common_rules.check_one_of(mode, "spec.volumeLifecycleModes", "Ephemeral", "Persistent")

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateCSIDriverUpdate``."""
        yield from self.validate(new)
        yield from common_rules.check_immutable(
            new["spec"], old["spec"], "spec", "attachRequired", "volumeLifecycleModes"
        )


class CSINodeKind(KindBehaviour):
    """The CSI drivers of a node."""

    needs_revision = True
    status_after_delete = False

    def default(self, obj: Object) -> None:
        """``drivers`` is always present, null if there are none."""
        spec = common_rules.sub_object(obj, "spec")
        spec["drivers"] = spec.get("drivers")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateCSINode``."""
        drivers = obj["spec"]["drivers"] or ()
        for index, driver in enumerate(drivers):
            yield from _check_node_driver(driver, f"spec.drivers[{index}]")
        seen = [driver.get("name") for driver in drivers]
        for index, name in enumerate(seen):
            if name in seen[:index]:
                yield field_errors.duplicate(f"spec.drivers[{index}].name", name)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """A driver's node id is immutable (``ValidateCSINodeUpdate``)."""
        yield from self.validate(new)
        before = {driver["name"]: driver for driver in old["spec"]["drivers"] or ()}
        for index, driver in enumerate(new["spec"]["drivers"] or ()):
            was = before.get(driver["name"])
            if was and was.get("nodeID") != driver.get("nodeID"):
                yield field_errors.invalid(f"spec.drivers[{index}].nodeID", driver.get("nodeID"), "field is immutable")


class VolumeAttachmentKind(KindBehaviour):
    """The attachment of a volume to a node."""

    has_status = True
    needs_revision = True
    status_after_delete = False

    def default(self, obj: Object) -> None:
        """``status.attached`` is always present."""
        common_rules.sub_object(common_rules.sub_object(obj, "spec"), "source")
        common_rules.fill_missing(common_rules.sub_object(obj, "status"), attached=False)

    def prepare_create(self, obj: Object) -> None:
        """Clears the status."""
        obj["status"] = {"attached": False}

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateVolumeAttachment``."""
        spec = obj["spec"]
        attacher, source, node = spec.get("attacher") or "", spec["source"], spec.get("nodeName") or ""
        if not attacher:
            yield field_errors.value_required("spec.attacher")
        else:
            yield from _check_driver(attacher, "spec.attacher")
        named, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
        if inline is None and named is None:
            yield field_errors.value_required(
                "spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
            )
        elif inline is not None and named is not None:
            why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
            yield field_errors.forbidden("spec.source", why)
        elif named is not None and not named:
            yield field_errors.value_required(
                "spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"
            )
        if wrong := name_rules.subdomain_error(node):
            yield field_errors.invalid("spec.nodeName", node, wrong)
        yield from _check_attachment_status(obj.get("status") or {})
        if named is not None and (wrong := name_rules.subdomain_error(named)):
            yield field_errors.invalid("spec.source.persistentVolumeName", named, wrong)

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """Validates the whole object again (``ValidateVolumeAttachmentUpdate``)."""
        return self.validate(new)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The spec is immutable (``ValidateVolumeAttachmentUpdate``)."""
        yield from self.validate(new)
        if new["spec"] != old["spec"]:
            spec = new["spec"]
            source = {"PersistentVolumeName": spec["source"].get("persistentVolumeName"), "InlineVolumeSpec": None}
            said = {"Attacher": spec.get("attacher", ""), "Source": source, "NodeName": spec.get("nodeName", "")}
            yield field_errors.invalid("spec", said, common_rules.IMMUTABLE)


def _check_attachment_status(status: Object) -> Iterator[Cause]:
    metadata = status.get("attachmentMetadata") or {}
    if sum(len(key) + len(value) for key, value in metadata.items()) > _ATTACHMENT_METADATA:
        yield field_errors.too_long("status.attachmentMetadata", _ATTACHMENT_METADATA)
    for name in ("attachError", "detachError"):
        error = status.get(name) or {}
        if len(error.get("message", "").encode()) > _VOLUME_ERROR:  # upstream's message names the other limit
            yield field_errors.too_long(f"status.{name}.message", _ATTACHMENT_METADATA)
        if error.get("errorCode", 0) < 0:
            why = "must be between 0 and 2147483647, inclusive"
            yield field_errors.invalid(f"status.{name}.errorCode", error["errorCode"], why)


def _check_tokens(requests: Iterable[Object]) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, request in enumerate(requests):
        path, audience, seconds = (
            f"spec.tokenRequests[{index}]",
            request.get("audience", ""),
            request.get("expirationSeconds"),
        )
        if audience in seen:
            yield field_errors.duplicate(f"{path}.audience", audience)
        elif seconds is not None and seconds < _SHORTEST_TOKEN:
            why = "may not specify a duration less than 10 minutes"
            yield field_errors.invalid(f"{path}.expirationSeconds", seconds, why)
        elif seconds is not None and seconds > _LONGEST_TOKEN:
            why = "may not specify a duration larger than 2^32 seconds"
            yield field_errors.invalid(f"{path}.expirationSeconds", seconds, why)
        seen.add(audience)


def _check_driver(name: str, path: str) -> Iterator[Cause]:
    if len(name) > 63:
        yield field_errors.too_long(path, 63)
    if wrong := name_rules.subdomain_error(name.lower()):
        yield field_errors.invalid(path, name, wrong)


def _check_node_driver(driver: Object, path: str) -> Iterator[Cause]:
    if not driver.get("name"):
        yield field_errors.value_required(f"{path}.name")
    else:
        yield from _check_driver(driver["name"], f"{path}.name")
    node = driver.get("nodeID") or ""
    if not node:
        yield field_errors.value_required(f"{path}.nodeID")
    elif len(node) > _NODE_ID:
        why = f"must be {_NODE_ID} characters or less"
        yield field_errors.invalid(f"{path}.nodeID", node, why)
    count = (driver.get("allocatable") or {}).get("count")
    if count is not None and count < 0:
        yield field_errors.invalid(f"{path}.allocatable.count", count, common_rules.NOT_NEGATIVE)
    yield from common_rules.check_unique(driver.get("topologyKeys") or (), f"{path}.topologyKeys")
    for key in driver.get("topologyKeys") or ():
        if wrong := name_rules.qualified_name_error(key):
            yield field_errors.invalid(f"{path}.topologyKeys", key, wrong)
