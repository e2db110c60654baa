"""The actions that a controller returns as values; the runner turns them into requests."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lastcall_lab.controllers.framework.view import Object, ObjectRef


@dataclass(frozen=True)
class RecordEvent:
    """Records an event about an object. Repeated events are counted."""

    about: ObjectRef
    uid: str
    kind: str
    api_version: str
    reason: str
    message: str
    type: str = "Normal"
    source: str = ""
    """The reporting component, if it is not the controller."""


@dataclass(frozen=True)
class CreateObject:
    """Creates an object. An existing one is no failure."""

    resource: str
    namespace: str
    obj: Object
    event: RecordEvent | None = None
    """The event on success; ``{name}`` in its message becomes the new object's name."""
    refused: RecordEvent | None = None
    """The event on failure; ``{error}`` in its message becomes the reason. None in a terminating namespace."""


@dataclass(frozen=True)
class PatchObject:
    """A merge patch. It does nothing if ``uid`` or ``revision`` no longer match the object.

    ``strategic``: a strategic merge patch, which can change one of several conditions and keep the others.
    """

    ref: ObjectRef
    body: Object
    subresource: str = ""
    uid: str = ""
    revision: str = ""
    strategic: bool = False


@dataclass(frozen=True)
class DeleteObject:
    """Deletes an object. A missing one is no failure. ``uid`` is a precondition."""

    ref: ObjectRef
    uid: str = ""
    grace: int | None = None
    propagation: str = ""
    refused: RecordEvent | None = None
    """The event on failure; ``{error}`` in its message becomes the reason."""


@dataclass(frozen=True)
class BindPod:
    """Binds a pod to a node and records ``event`` on success."""

    ref: ObjectRef
    uid: str
    node: str
    event: RecordEvent | None = None


@dataclass(frozen=True)
class FinalizeNamespace:
    """Removes the finalizer ``kubernetes`` from an empty namespace that is being deleted."""

    ref: ObjectRef


@dataclass(frozen=True)
class RunWork:
    """An idempotent operation outside of the API: ``verb(*arguments)``."""

    verb: Callable[..., Awaitable[None]]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class IfOwnersGone:
    """Performs ``then`` if none of the ``owners``, each with its uid, exists.

    It reads them live, because a view may lag behind.
    """

    owners: tuple[tuple[ObjectRef, str], ...]
    then: PatchObject | DeleteObject


Action = CreateObject | PatchObject | DeleteObject | BindPod | RecordEvent | FinalizeNamespace | IfOwnersGone | RunWork


@dataclass(frozen=True)
class Decision:
    """``again_in``: seconds after which to decide again without a change; ``said``: one sentence for the log."""

    actions: tuple[Action, ...] = ()
    again_in: float | None = None
    said: str = ""


def status_patches(key: ObjectRef, obj: Object, status: Object) -> tuple[PatchObject, ...]:
    """Patches the status to the wanted one and removes other fields; no action if they are equal."""
    old = obj.get("status") or {}
    if status == old:
        return ()
    return (PatchObject(key, {"status": merge_patch(old, status)}, "status", uid=obj["metadata"]["uid"]),)


def merge_patch(old: Object, new: Object) -> Object:
    """The RFC 7386 patch from one JSON object to the other; removed fields become null at every depth."""
    gone = {name: None for name in old if name not in new}
    kept = {
        name: merge_patch(old[name], value) if isinstance(value, dict) and isinstance(old.get(name), dict) else value
        for name, value in new.items()
    }
    return {**gone, **kept}
