"""Adds and removes single finalizers (pure)."""

from lastcall_lab.controllers.framework.actions import PatchObject
from lastcall_lab.controllers.framework.view import Object, ref_of


def add_finalizer(resource: str, obj: Object, finalizer: str) -> tuple[PatchObject, ...]:
    """Adds a finalizer. No action if it exists, or if the object is being deleted and so accepts no new ones."""
    present = obj["metadata"].get("finalizers") or []
    if finalizer in present or obj["metadata"].get("deletionTimestamp"):
        return ()
    return (_finalizers_patch(resource, obj, [*present, finalizer]),)


def remove_finalizer(resource: str, obj: Object, finalizer: str) -> tuple[PatchObject, ...]:
    """Removes a finalizer; no action if it is absent."""
    present = obj["metadata"].get("finalizers") or []
    if finalizer not in present:
        return ()
    return (_finalizers_patch(resource, obj, [one for one in present if one != finalizer]),)


def _finalizers_patch(resource: str, obj: Object, finalizers: list[str]) -> PatchObject:
    """Writes the whole list, so the patch is valid only for the known version."""
    metadata = obj["metadata"]
    body = {"metadata": {"finalizers": finalizers or None}}
    return PatchObject(ref_of(resource, obj), body, uid=metadata["uid"], revision=metadata["resourceVersion"])
