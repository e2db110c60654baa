"""Finalizers, put on and taken off one by one (pure)."""

from lastcall.lab.controllers.actions import Patch
from lastcall.lab.controllers.view import Object, ref


def add(resource: str, obj: Object, finalizer: str) -> tuple[Patch, ...]:
    """Puts one on; nothing if it is there, or if the object is being deleted, which takes no new ones."""
    present = obj["metadata"].get("finalizers") or []
    if finalizer in present or obj["metadata"].get("deletionTimestamp"):
        return ()
    return (_write(resource, obj, [*present, finalizer]),)


def remove(resource: str, obj: Object, finalizer: str) -> tuple[Patch, ...]:
    """Takes one off; nothing if it is not there."""
    present = obj["metadata"].get("finalizers") or []
    if finalizer not in present:
        return ()
    return (_write(resource, obj, [one for one in present if one != finalizer]),)


def _write(resource: str, obj: Object, finalizers: list[str]) -> Patch:
    """The list is written whole, so that the patch holds only for the version that is known."""
    metadata = obj["metadata"]
    body = {"metadata": {"finalizers": finalizers or None}}
    return Patch(ref(resource, obj), body, uid=metadata["uid"], revision=metadata["resourceVersion"])
