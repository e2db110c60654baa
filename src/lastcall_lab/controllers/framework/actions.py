"""What a controller wants done: values, which the runner turns into requests."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lastcall_lab.controllers.framework.view import Object, ObjectRef


@dataclass(frozen=True)
class RecordEvent:
    """An event about an object; one that repeats is counted, not repeated."""

    about: ObjectRef
    uid: str
    kind: str
    api_version: str
    reason: str
    message: str
    type: str = "Normal"
    source: str = ""
    """The component that tells it, where that is not the controller's own name."""


@dataclass(frozen=True)
class CreateObject:
    """A new object; that it is there already is no failure."""

    resource: str
    namespace: str
    obj: Object
    event: RecordEvent | None = None
    """Told when it has worked; ``{name}`` in its message is the new object's name."""
    refused: RecordEvent | None = None
    """Told when it is refused; ``{error}`` in its message is why. In a namespace that goes nothing is told."""


@dataclass(frozen=True)
class PatchObject:
    """A merge patch; ``uid`` and ``revision`` make it fail quietly if the object is another one, or has changed.

    ``strategic``: a strategic merge patch, which changes one of several conditions without a word on the others.
    """

    ref: ObjectRef
    body: Object
    subresource: str = ""
    uid: str = ""
    revision: str = ""
    strategic: bool = False


@dataclass(frozen=True)
class DeleteObject:
    """A DELETE; that the object is gone is no failure. ``uid`` is a precondition."""

    ref: ObjectRef
    uid: str = ""
    grace: int | None = None
    propagation: str = ""
    refused: RecordEvent | None = None
    """Told when it is refused; ``{error}`` in its message is why."""


@dataclass(frozen=True)
class BindPod:
    """Binds a pod to a node; ``event`` is told when that has worked."""

    ref: ObjectRef
    uid: str
    node: str
    event: RecordEvent | None = None


@dataclass(frozen=True)
class FinalizeNamespace:
    """Takes the finalizer ``kubernetes`` from a namespace that is being deleted and holds nothing any more."""

    ref: ObjectRef


@dataclass(frozen=True)
class RunWork:
    """Something that is done outside of the API: ``verb(*arguments)``; done again it changes nothing."""

    verb: Callable[..., Awaitable[None]]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class IfOwnersGone:
    """Does ``then`` if none of the ``owners``, each with its uid, is there: they are asked for, as a view may be behind."""

    owners: tuple[tuple[ObjectRef, str], ...]
    then: PatchObject | DeleteObject


Action = CreateObject | PatchObject | DeleteObject | BindPod | RecordEvent | FinalizeNamespace | IfOwnersGone | RunWork


@dataclass(frozen=True)
class Decision:
    """``again_in`` is when to look again although nothing has changed, in seconds; ``said`` one sentence for people."""

    actions: tuple[Action, ...] = ()
    again_in: float | None = None
    said: str = ""


def status_patches(key: ObjectRef, obj: Object, status: Object) -> tuple[PatchObject, ...]:
    """Makes the status what it should be, also what is not in it any more; nothing if it is so already."""
    old = obj.get("status") or {}
    if status == old:
        return ()
    return (PatchObject(key, {"status": merge_patch(old, status)}, "status", uid=obj["metadata"]["uid"]),)


def merge_patch(old: Object, new: Object) -> Object:
    """What makes one object of JSON the other, by RFC 7386: what is not there any more is null, at every depth."""
    gone = {name: None for name in old if name not in new}
    kept = {
        name: merge_patch(old[name], value) if isinstance(value, dict) and isinstance(old.get(name), dict) else value
        for name, value in new.items()
    }
    return {**gone, **kept}
