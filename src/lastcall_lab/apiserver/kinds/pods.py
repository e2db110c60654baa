"""Pods: ``pkg/registry/core/pod``; sibling modules hold defaults, rules and warnings."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from lastcall_lab.apiserver.kinds.pod_container_rules import validate_image
from lastcall_lab.apiserver.kinds.pod_defaults import set_pod_defaults
from lastcall_lab.apiserver.kinds.pod_resources import quality_of_service
from lastcall_lab.apiserver.kinds.pod_spec_rules import validate_pod_spec
from lastcall_lab.apiserver.kinds.pod_status import prepare_status, validate_status_change
from lastcall_lab.apiserver.kinds.pod_update_rules import (
    MIRROR,
    validate_change,
    validate_ephemeral_change,
    validate_resize,
)
from lastcall_lab.apiserver.kinds.pod_warnings import pod_warnings
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions, KindBehaviour, keep_field
from lastcall_lab.apiserver.values import field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

FINISHED = ("Succeeded", "Failed")
"""The final phases of a pod."""

_COST = "controller.kubernetes.io/pod-deletion-cost"
_GATED: Object = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class PodKind(KindBehaviour):
    """Its ``parts`` besides the status are ``ephemeralcontainers`` and ``resize``."""

    has_generation: ClassVar[bool] = True
    status_after_delete: ClassVar[bool] = False

    def default(self, obj: Object) -> None:
        """``SetDefaults_Pod`` and the functions that it calls."""
        set_pod_defaults(obj)

    def default_change(self, new: Object, old: Object) -> None:
        """Sets only the defaults of the spec."""
        if new.get("spec") != old["spec"]:
            set_pod_defaults(new)

    def prepare_create(self, obj: Object) -> None:
        """Starts with phase Pending."""
        obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(obj)}
        if obj["spec"].get("schedulingGates"):
            obj["status"]["conditions"] = [dict(_GATED)]

    def prepare_update(self, new: Object, old: Object) -> None:
        """Keeps the status."""
        keep_field(new, old, "status")

    def prepare_status(self, new: Object, old: Object) -> None:
        """Keeps spec and owner references; labels and annotations may change with the status."""
        keep_field(new, old, "spec")
        for name in ("deletionTimestamp", "ownerReferences"):
            keep_field(new["metadata"], old["metadata"], name)
        prepare_status(new.setdefault("status", {}), old.get("status") or {})

    def prepare_part(self, part: str, new: Object, old: Object) -> None:
        """Changes only ephemeral containers, or only the resources of containers."""
        wanted = new["spec"]
        new["spec"] = dict(old["spec"])
        for name in ("labels", "annotations", "finalizers", "ownerReferences"):
            keep_field(new["metadata"], old["metadata"], name)
        keep_field(new, old, "status")
        if part == "ephemeralcontainers":
            keep_field(new["spec"], wanted, "ephemeralContainers")
            return
        for name in ("containers", "initContainers"):
            if name in wanted or name in old["spec"]:
                new["spec"][name] = _with_new_resources(wanted.get(name) or [], old["spec"].get(name) or [])

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidatePodCreate``."""
        yield from _rules(obj)
        spec = obj["spec"]
        if spec.get("ephemeralContainers"):
            yield field_errors.forbidden("spec.ephemeralContainers", "cannot be set on create")
        if spec.get("nodeName") and spec.get("schedulingGates"):
            yield field_errors.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidatePodUpdate``, which validates the metadata again."""
        yield from self._metadata(new)
        yield from _rules(new)
        yield from validate_change(new, old)

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidatePodStatusUpdate``."""
        return validate_status_change(new, old)

    def validate_part(self, part: str, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidatePodEphemeralContainersUpdate`` and ``ValidatePodResize``."""
        yield from self._metadata(new)
        yield from _rules(new)
        check = validate_ephemeral_change if part == "ephemeralcontainers" else validate_resize
        yield from check(new, old)

    def _metadata(self, pod: Object) -> Iterable[Cause]:
        yield from object_meta.check_metadata(pod, validate_name=self.validate_name, namespaced=True)
        yield from object_meta.check_finalizer_names(pod)

    def warnings(self, obj: Object) -> Iterable[str]:
        """The warnings about a new pod."""
        return pod_warnings(obj)

    def update_warnings(self, new: Object, old: Object) -> Iterable[str]:
        """None: mostly controllers update pods, and they do so often."""
        return ()

    def fields(self, obj: Object) -> Mapping[str, str]:
        """``pod.ToSelectableFields``; ``status.podIPs`` is accepted without a value, ``spec.host`` is deprecated."""
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.host": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": next((one.get("ip", "") for one in status.get("podIPs") or ()), ""),
            "status.podIPs": "",
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }

    def grace(self, obj: Object, options: DeleteOptions) -> int | None:
        """The requested grace period, else the pod's own; 0 for an unscheduled or finished pod."""
        spec = obj["spec"]
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in FINISHED:
            return 0
        seconds = options.grace if options.grace is not None else spec.get("terminationGracePeriodSeconds", 0)
        return seconds if seconds >= 0 else 1


def _with_new_resources(wanted: list[Object], old: list[Object]) -> list[Object]:
    """The old containers with the wanted resources; validation rejects other container changes."""
    if [one.get("name") for one in wanted] != [one.get("name") for one in old]:
        return wanted
    result = []
    for new, before in zip(wanted, old, strict=True):
        container = dict(before)
        keep_field(container, new, "resources")
        keep_field(container, new, "resizePolicy")
        result.append(container)
    return result


def _rules(pod: Object) -> Iterable[Cause]:
    """``validatePodMetadataAndSpec`` without the common metadata rules."""
    spec, annotations = pod["spec"], pod["metadata"].get("annotations") or {}
    if MIRROR in annotations and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        yield field_errors.invalid(f"metadata.annotations[{MIRROR}]", annotations[MIRROR], why)
    if _COST in annotations and not _is_cost(annotations[_COST]):
        yield field_errors.invalid(f"metadata.annotations[{_COST}]", annotations[_COST], "must be a 32bit integer")
    yield from validate_pod_spec(spec, "spec", is_pod=True)
    if not spec.get("serviceAccountName"):
        yield from _tokens(spec)
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            yield from validate_image(container, f"spec.{name}[{index}]")


def _is_cost(text: str) -> bool:
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and (digits == "0" or not digits.startswith("0"))
    return plain and len(digits) <= 10 and -(2**31) <= int(text) < 2**31


def _tokens(spec: Object) -> Iterable[Cause]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if "serviceAccountToken" in source:
                path = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                yield field_errors.forbidden(path, "must not be specified when serviceAccountName is not set")
