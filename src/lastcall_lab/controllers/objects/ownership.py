"""The objects of a workload: those that it owns and selects, and selected ones without an owner.

The rules are those of ``pkg/controller/controller_ref_manager.go``: a workload adopts orphans that match its selector
and releases owned objects that no longer match. A workload that is being deleted does neither.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from lastcall.model.label_selector import Matcher, select_nothing, selector_matcher
from lastcall_lab.controllers.framework.actions import CreateObject, DeleteObject, PatchObject, RecordEvent
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, controller_of, ref_of
from lastcall_lab.controllers.objects.pods import owner_reference


class OwnerKind(NamedTuple):
    """A kind of workload."""

    api_version: str
    kind: str
    resource: str

    def controller_reference(self, owner: Object) -> Object:
        """The owner reference that makes ``owner`` the controller of an object."""
        return owner_reference(owner, self.api_version, self.kind)

    def owner_event(self, about: Object, reason: str, message: str, type_: str = "Normal") -> RecordEvent:
        """An event about a workload of this kind."""
        place, uid = ref_of(self.resource, about), about["metadata"]["uid"]
        return RecordEvent(place, uid, self.kind, self.api_version, reason, message, type_)


def create_pod_action(pod: Object, owner: Object, kind: OwnerKind) -> CreateObject:
    """Creates a pod of ``owner`` and records an event."""
    made = kind.owner_event(owner, "SuccessfulCreate", "Created pod: {name}")
    refused = kind.owner_event(owner, "FailedCreate", "Error creating: {error}", "Warning")
    return CreateObject("pods", owner["metadata"]["namespace"], pod, made, refused)


def delete_pod_actions(pod: Object, owner: Object, kind: OwnerKind) -> tuple[DeleteObject, RecordEvent]:
    """Deletes a pod of ``owner`` and records an event."""
    told = kind.owner_event(owner, "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")
    refused = kind.owner_event(owner, "FailedDelete", "Error deleting: {error}", "Warning")
    return DeleteObject(ref_of("pods", pod), uid=pod["metadata"]["uid"], refused=refused), told


class ClaimResult(NamedTuple):
    """``objects`` belong to the workload now. Decide the rest only once the effects of ``patches`` are visible."""

    objects: Sequence[Object]
    patches: Sequence[PatchObject]


def claim_objects(
    owner: Object,
    kind: OwnerKind,
    resource: str,
    view: View,
    *,
    only: Callable[[Object], bool] | None = None,
    finalizer: str = "",
) -> ClaimResult:
    """The objects of a resource that belong to ``owner``, and the patches that adopt and release objects.

    ``only`` is a further condition; ``finalizer`` is added and removed with the owner reference.
    """
    matches = selector_of(owner)

    def fits(obj: Object) -> bool:
        return matches(obj["metadata"].get("labels") or {}) and (only is None or only(obj))

    owned = view.controlled_by(owner["metadata"]["uid"], resource)
    if owner["metadata"].get("deletionTimestamp"):
        return ClaimResult([one for one in owned if fits(one)], ())
    orphans = [
        one
        for one in view.without_controller(resource, owner["metadata"]["namespace"])
        if not one["metadata"].get("deletionTimestamp") and fits(one)
    ]
    patches = [_adopt_patch(one, owner, kind, resource, finalizer) for one in orphans]
    kept = []
    for one in owned:
        if fits(one):
            kept.append(one)
        else:
            patches.append(_release_patch(one, owner, resource, finalizer))
    return ClaimResult(kept, patches)


def affected_workloads(obj: Object, kind: OwnerKind, view: View) -> Iterator[ObjectRef]:
    """The workloads of a kind to reconcile because ``obj`` changed: its owner, or those that may adopt it."""
    owner, namespace = controller_of(obj), obj["metadata"].get("namespace", "")
    if owner:
        if owner["kind"] == kind.kind and owner["apiVersion"] == kind.api_version:
            yield ObjectRef(kind.resource, namespace, owner["name"])
        return
    for workload in view.all(kind.resource, namespace):
        if selector_of(workload)(object_labels(obj)):
            yield ref_of(kind.resource, workload)


def selector_of(workload: Object) -> Matcher:
    """Its selector; an invalid one selects nothing."""
    selector = workload["spec"].get("selector") or {}
    if (pairs := selector.get("matchLabels")) and not selector.get("matchExpressions"):
        return lambda labels: pairs.items() <= labels.items()  # the common case
    try:
        return selector_matcher(workload["spec"].get("selector"))
    except ValueError:
        return select_nothing


def selects_all(workload: Object) -> bool:
    """Whether the selector is empty. Kubernetes refuses to act on such a selector."""
    selector = workload["spec"].get("selector")
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def object_labels(obj: Object) -> dict[str, str]:
    """The labels in an object's metadata."""
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


def _adopt_patch(obj: Object, owner: Object, kind: OwnerKind, resource: str, finalizer: str) -> PatchObject:
    metadata = obj["metadata"]
    others = [one for one in metadata.get("ownerReferences") or () if one["uid"] != owner["metadata"]["uid"]]
    change: Object = {"ownerReferences": [*others, kind.controller_reference(owner)]}
    if finalizer:
        change["finalizers"] = sorted({*(metadata.get("finalizers") or ()), finalizer})
    return _ownership_patch(obj, resource, change)


def _release_patch(obj: Object, owner: Object, resource: str, finalizer: str) -> PatchObject:
    metadata = obj["metadata"]
    uid = owner["metadata"]["uid"]
    change: Object = {"ownerReferences": [one for one in metadata["ownerReferences"] if one["uid"] != uid]}
    if finalizer in (metadata.get("finalizers") or ()):
        change["finalizers"] = [one for one in metadata["finalizers"] if one != finalizer]
    return _ownership_patch(obj, resource, change)


def _ownership_patch(obj: Object, resource: str, metadata: Object) -> PatchObject:
    """Replaces whole lists, so the object must not have changed meanwhile."""
    own = obj["metadata"]
    return PatchObject(ref_of(resource, obj), {"metadata": metadata}, uid=own["uid"], revision=own["resourceVersion"])
