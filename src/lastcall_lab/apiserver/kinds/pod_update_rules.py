"""Allowed changes of a pod's spec, ephemeral containers and resources, pure.

From ``validation.ValidatePodUpdate`` and related functions in ``pkg/apis/core/validation``.
"""

from collections.abc import Iterator

from lastcall_lab.apiserver.kinds.pod_container_rules import validate_image
from lastcall_lab.apiserver.kinds.pod_diff import spec_diff
from lastcall_lab.apiserver.kinds.pod_resources import quality_of_service
from lastcall_lab.apiserver.kinds.pod_scheduling_rules import validate_tolerations
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a mirror pod, which represents a kubelet's static pod in the API."""

_MOST = 2**31 - 1
_CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_ONLY_COMPUTE = "only cpu and memory resources are mutable"


def validate_change(new: Object, old: Object) -> Iterator[Cause]:
    """Validates a new spec against the old one, in addition to the rules for every spec."""
    yield from validate_mirror(new, old)
    spec, before = new["spec"], old["spec"]
    for name in ("containers", "initContainers"):
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            yield field_errors.forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
        for index, container in enumerate(spec.get(name) or ()):
            if not container.get("image"):
                yield field_errors.value_required(f"spec.{name}[{index}].image")
            yield from validate_image(container, f"spec.{name}[{index}]")
    wrong = [*_deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))]
    yield from wrong
    if wrong and "activeDeadlineSeconds" in spec:
        return
    yield from _tolerations(spec.get("tolerations") or [], before.get("tolerations") or [])
    yield from _gates(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    if spec != before:
        yield from _others(spec, before)


def validate_mirror(new: Object, old: Object) -> Iterator[Cause]:
    """The mirror pod annotation is immutable."""
    annotations, before = new["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    path = f"metadata.annotations[{MIRROR}]"
    if MIRROR in before and annotations.get(MIRROR) != before[MIRROR]:
        yield field_errors.forbidden(path, "may not remove or update mirror pod annotation")
    if MIRROR in annotations and MIRROR not in before:
        yield field_errors.forbidden(path, "may not add mirror pod annotation")


def _deadline(new: int | None, old: int | None) -> Iterator[Cause]:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            yield field_errors.invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= new <= _MOST:
        yield field_errors.invalid(path, new, f"must be between 0 and {_MOST}, inclusive")
    elif old is not None and old < new:
        yield field_errors.invalid(path, new, "must be less than or equal to previous value")


def _tolerations(new: list[Object], old: list[Object]) -> Iterator[Cause]:
    kept = [_without(one, "tolerationSeconds") for one in new]
    if any(_without(one, "tolerationSeconds") not in kept for one in old):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield field_errors.forbidden("spec.tolerations", why)
    else:
        yield from validate_tolerations(new, "spec.tolerations")


def _gates(new: list[Object], old: list[Object]) -> Iterator[Cause]:
    for index, gate in enumerate(new):
        if gate not in old:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            yield field_errors.forbidden(f"spec.schedulingGates[{index}].name", why)


def _without(value: Object, *keys: str) -> Object:
    return {key: one for key, one in value.items() if key not in keys}


def _others(spec: Object, before: Object) -> Iterator[Cause]:
    """All other fields are immutable; a gated pod may narrow its scheduling constraints."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if before.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        free.add("terminationGracePeriodSeconds")
    if before.get("schedulingGates"):
        free |= {"nodeSelector", "affinity"}
        yield from _affinity_violations(spec, before)
    wanted = {**spec, **{name: before[name] for name in sorted(free) if name in before}}
    for name in sorted(free - before.keys()):
        wanted.pop(name, None)
    for name in ("containers", "initContainers"):
        if name in spec:
            pairs = zip(spec[name], before[name], strict=True)
            wanted[name] = [{**container, "image": other["image"]} for container, other in pairs]
    if wanted != before:
        yield field_errors.forbidden("spec", f"{_CHANGEABLE}\n{spec_diff(before, wanted)}")


def _affinity_violations(spec: Object, before: Object) -> Iterator[Cause]:
    selector, old = spec.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in old.items()):
        why = "only additions are allowed (no mutations or deletions)"
        yield field_errors.invalid("spec.nodeSelector", selector, why)
    if not _same_affinity(spec.get("affinity") or {}, before.get("affinity") or {}):
        yield field_errors.forbidden("spec", _CHANGEABLE)


def _same_affinity(new: Object, old: Object) -> bool:
    """Compares affinity without node affinity terms that may change: preferences, and narrower requirements."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if _without(new, "nodeAffinity") != _without(old, "nodeAffinity"):
        return False
    before = (old.get("nodeAffinity") or {}).get(required)
    if before is None:
        return True
    terms = ((new.get("nodeAffinity") or {}).get(required) or {}).get("nodeSelectorTerms") or []
    olds = before.get("nodeSelectorTerms") or []
    return len(terms) == len(olds) and all(_narrower(*pair) for pair in zip(terms, olds, strict=True))


def _narrower(term: Object, old: Object) -> bool:
    kinds = ("matchExpressions", "matchFields")
    return all((term.get(kind) or [])[: len(old.get(kind) or [])] == (old.get(kind) or []) for kind in kinds)


def validate_ephemeral_change(new: Object, old: Object) -> Iterator[Cause]:
    """Ephemeral containers may only be added."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield field_errors.forbidden("", "static pods do not support ephemeral containers")
        return
    now = {container.get("name"): container for container in new["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container["name"]
        if name not in now:
            why = f'existing ephemeral containers "{name}" may not be removed\n'
            yield field_errors.forbidden("spec.ephemeralContainers", why)
        elif now[name] != container:
            why = f'existing ephemeral containers "{name}" may not be changed\n'
            yield field_errors.forbidden("spec.ephemeralContainers", why)


def validate_resize(new: Object, old: Object) -> Iterator[Cause]:
    """CPU and memory of long-running containers may change within the pod's QoS class."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield field_errors.forbidden("", "static pods cannot be resized")
        return
    spec, before = new["spec"], old["spec"]
    if quality_of_service(new) != quality_of_service(old):
        why = "Pod QOS Class may not change as a result of resizing"
        yield field_errors.invalid("spec", (old.get("status") or {}).get("qosClass", ""), why)
    for name in ("initContainers", "containers"):
        if _names(spec, name) != _names(before, name):
            yield field_errors.forbidden("spec", _ONLY_COMPUTE)
            continue
        pairs = zip(spec.get(name) or (), before.get(name) or (), strict=True)
        for index, (container, earlier) in enumerate(pairs):
            sidecar = name == "initContainers" and earlier.get("restartPolicy") == "Always"
            if name == "containers" or sidecar:
                yield from _resize_violations(container, earlier, f"spec.{name}[{index}].resources", sidecar=sidecar)
            elif container != earlier:
                yield field_errors.forbidden("spec", "resources for non-sidecar init containers are immutable")


def _names(spec: Object, name: str) -> list[str]:
    return [container.get("name", "") for container in spec.get(name) or ()]


def _resize_violations(new: Object, old: Object, path: str, *, sidecar: bool) -> Iterator[Cause]:
    now, before = new.get("resources") or {}, old.get("resources") or {}
    for side in ("requests", "limits"):
        if (before.get(side) or {}).keys() - (now.get(side) or {}).keys():
            yield field_errors.forbidden(f"{path}.{side}", f"resource {side} cannot be removed")
        others = [_without(one.get(side) or {}, "cpu", "memory") for one in (now, before)]
        if others[0] != others[1]:
            which = "only cpu and memory resources for sidecar containers are mutable"
            yield field_errors.forbidden("spec", which if sidecar else _ONLY_COMPUTE)
