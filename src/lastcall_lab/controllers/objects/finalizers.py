"""Finalizers, put on and taken off one by one (pure)."""

from lastcall_lab.controllers.framework.actions import PatchObject
from lastcall_lab.controllers.framework.view import Object, ref_of


def add_finalizer(resource: str, obj: Object, finalizer: str) -> tuple[PatchObject, ...]:
    """Puts one on; nothing if it is there, or if the object is being deleted, which takes no new ones."""
    present = obj["metadata"].get("finalizers") or []
    if finalizer in present or obj["metadata"].get("deletionTimestamp"):
        return ()
    return (_finalizers_patch(resource, obj, [*present, finalizer]),)


def remove_finalizer(resource: str, obj: Object, finalizer: str) -> tuple[PatchObject, ...]:
    """Takes one off; nothing if it is not there."""
    present = obj["metadata"].get("finalizers") or []
    if finalizer not in present:
        return ()
    return (_finalizers_patch(resource, obj, [one for one in present if one != finalizer]),)


def _finalizers_patch(resource: str, obj: Object, finalizers: list[str]) -> PatchObject:
    """The list is written whole, so that the patch holds only for the version that is known."""
    metadata = obj["metadata"]
    body = {"metadata": {"finalizers": finalizers or None}}
    return PatchObject(ref_of(resource, obj), body, uid=metadata["uid"], revision=metadata["resourceVersion"])
