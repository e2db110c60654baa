"""Which objects belong to a workload: those that it owns and selects, and those that nobody owns and it selects.

The rules are those of ``pkg/controller/controller_ref_manager.go``: orphans that match are adopted, what is owned but
does not match any more is released, and a workload that is being deleted does neither.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from lastcall.lab.controllers.actions import Create, Delete, Patch, Tell
from lastcall.lab.controllers.pods import owner_reference
from lastcall.lab.controllers.view import Object, Ref, View, controller_of, ref
from lastcall.model.label_selector import Matcher, labels_of, nothing


class Kind(NamedTuple):
    """A kind of workload."""

    api_version: str
    kind: str
    resource: str

    def reference(self, owner: Object) -> Object:
        """What makes ``owner`` the controller of an object."""
        return owner_reference(owner, self.api_version, self.kind)

    def tell(self, about: Object, reason: str, message: str, type_: str = "Normal") -> Tell:
        """An event about one of this kind."""
        place, uid = ref(self.resource, about), about["metadata"]["uid"]
        return Tell(place, uid, self.kind, self.api_version, reason, message, type_)


def creation(pod: Object, owner: Object, kind: Kind) -> Create:
    """A new pod of ``owner``, and what is told of it."""
    made = kind.tell(owner, "SuccessfulCreate", "Created pod: {name}")
    refused = kind.tell(owner, "FailedCreate", "Error creating: {error}", "Warning")
    return Create("pods", owner["metadata"]["namespace"], pod, made, refused)


def deletion(pod: Object, owner: Object, kind: Kind) -> tuple[Delete, Tell]:
    """One of its pods goes, and what is told of it."""
    told = kind.tell(owner, "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")
    refused = kind.tell(owner, "FailedDelete", "Error deleting: {error}", "Warning")
    return Delete(ref("pods", pod), uid=pod["metadata"]["uid"], refused=refused), told


class Claimed(NamedTuple):
    """``objects`` belong to the workload now. ``patches`` come first: the rest is decided when they are seen."""

    objects: Sequence[Object]
    patches: Sequence[Patch]


def claim(
    owner: Object,
    kind: Kind,
    resource: str,
    view: View,
    *,
    only: Callable[[Object], bool] | None = None,
    finalizer: str = "",
) -> Claimed:
    """What belongs to ``owner`` of a resource, and how orphans come to it and strangers leave.

    ``only`` are further conditions; ``finalizer`` comes with the owner reference, and goes with it.
    """
    matches = selector_of(owner)

    def fits(obj: Object) -> bool:
        return matches(obj["metadata"].get("labels") or {}) and (only is None or only(obj))

    owned = view.owned(owner["metadata"]["uid"], resource)
    if owner["metadata"].get("deletionTimestamp"):
        return Claimed([one for one in owned if fits(one)], ())
    orphans = [
        one
        for one in view.free(resource, owner["metadata"]["namespace"])
        if not one["metadata"].get("deletionTimestamp") and fits(one)
    ]
    patches = [_adopted(one, owner, kind, resource, finalizer) for one in orphans]
    kept = []
    for one in owned:
        if fits(one):
            kept.append(one)
        else:
            patches.append(_released(one, owner, resource, finalizer))
    return Claimed(kept, patches)


def interested(obj: Object, kind: Kind, view: View) -> Iterator[Ref]:
    """The workloads of a kind that have to look since ``obj`` has changed: its owner, or those that may adopt it."""
    owner, namespace = controller_of(obj), obj["metadata"].get("namespace", "")
    if owner:
        if owner["kind"] == kind.kind and owner["apiVersion"] == kind.api_version:
            yield Ref(kind.resource, namespace, owner["name"])
        return
    for workload in view.all(kind.resource, namespace):
        if selector_of(workload)(labels(obj)):
            yield ref(kind.resource, workload)


def selector_of(workload: Object) -> Matcher:
    """Its selector; one that makes no sense selects nothing."""
    selector = workload["spec"].get("selector") or {}
    if (pairs := selector.get("matchLabels")) and not selector.get("matchExpressions"):
        return lambda labels: pairs.items() <= labels.items()  # as nearly all are
    try:
        return labels_of(workload["spec"].get("selector"))
    except ValueError:
        return nothing


def selects_all(workload: Object) -> bool:
    """Whether the selector is empty: Kubernetes refuses to act by such a one."""
    selector = workload["spec"].get("selector")
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def labels(obj: Object) -> dict[str, str]:
    """Of its metadata."""
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


def _adopted(obj: Object, owner: Object, kind: Kind, resource: str, finalizer: str) -> Patch:
    metadata = obj["metadata"]
    others = [one for one in metadata.get("ownerReferences") or () if one["uid"] != owner["metadata"]["uid"]]
    change: Object = {"ownerReferences": [*others, kind.reference(owner)]}
    if finalizer:
        change["finalizers"] = sorted({*(metadata.get("finalizers") or ()), finalizer})
    return _patch(obj, resource, change)


def _released(obj: Object, owner: Object, resource: str, finalizer: str) -> Patch:
    metadata = obj["metadata"]
    uid = owner["metadata"]["uid"]
    change: Object = {"ownerReferences": [one for one in metadata["ownerReferences"] if one["uid"] != uid]}
    if finalizer in (metadata.get("finalizers") or ()):
        change["finalizers"] = [one for one in metadata["finalizers"] if one != finalizer]
    return _patch(obj, resource, change)


def _patch(obj: Object, resource: str, metadata: Object) -> Patch:
    """Lists are replaced as a whole, so that nobody may have changed the object meanwhile."""
    own = obj["metadata"]
    return Patch(ref(resource, obj), {"metadata": metadata}, uid=own["uid"], revision=own["resourceVersion"])
