"""The garbage collector: deletes objects whose owners are gone (``pkg/controller/garbagecollector``).

Background: an object is deleted when all of its owners are gone. Foreground: an owner with the finalizer
``foregroundDeletion`` waits for its blocking dependents. Orphan: an owner with ``orphan`` removes its owner references
from its dependents.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from lastcall_lab.controllers.framework.actions import Action, Decision, DeleteObject, IfOwnersGone, PatchObject
from lastcall_lab.controllers.framework.controller import CUSTOM
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of
from lastcall_lab.controllers.objects import finalizers
from lastcall_lab.controllers.objects.served_kinds import DEFINITIONS, Kinds, custom_kinds, find_served_kind

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
UNLISTED_SECONDS = 1.0
"""Seconds until the next check of dependents in a resource that is not listed yet."""
UNKNOWN_SECONDS = 30.0
"""Seconds until the next check of an object with an owner of an unknown kind."""

_POLICIES = ((ORPHAN, "Orphan"), (FOREGROUND, "Foreground"))


class _OwnerState(Enum):
    THERE = "there"
    WAITS = "waits for its dependents"
    GONE = "gone"
    UNSEEN = "not seen, so that it may be gone"
    UNKNOWN = "of a kind that is not known, or not listed yet"


class GarbageCollector:
    """``kinds`` are the built-in kinds. An object with an owner of an unknown kind is never deleted."""

    name = "garbage-collector"

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self.resources: Sequence[str] = tuple(sorted({one.resource for one in kinds.values()} | {DEFINITIONS, CUSTOM}))

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The object, its dependents and its owners, each only if it may need an action.

        Most changes need none. It checks deleted objects, objects with an owner that is missing or being deleted, and
        dependents of an owner that this change deleted or marked for deletion.
        """
        key = ref_of(resource, obj)
        now = view.get(*key)
        if now is obj and self._is_concerned(obj, view):
            yield key
        if _waits_for_dependents(obj) or now is None or now["metadata"]["uid"] != obj["metadata"]["uid"]:
            for place, _ in view.dependents(obj["metadata"]["uid"]):
                yield place
        for owner in obj["metadata"].get("ownerReferences") or ():
            if (place_of := self._owner_ref(owner, obj, view)) and _is_being_deleted(view.get(*place_of)):
                yield place_of

    def _is_concerned(self, obj: Object, view: View) -> bool:
        owners = obj["metadata"].get("ownerReferences") or ()
        return _is_being_deleted(obj) or any(
            self._owner_state(owner, obj, view) is not _OwnerState.THERE for owner in owners
        )

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """The action for one object."""
        obj = view.get(*key)
        if obj is None:
            return Decision()
        if obj["metadata"].get("deletionTimestamp"):
            return _decide_owner(key, obj, view)
        return self._decide_dependent(key, obj, view)

    # -- dependents ----------------------------------------------------------------------------------------------------

    def _decide_dependent(self, key: ObjectRef, obj: Object, view: View) -> Decision:
        """Deletes the object if no owner remains; otherwise removes the references to missing owners."""
        owners = [
            (owner, self._owner_state(owner, obj, view)) for owner in obj["metadata"].get("ownerReferences") or ()
        ]
        states = {state for _, state in owners}
        if _OwnerState.UNKNOWN in states:
            return Decision(
                again_in=UNKNOWN_SECONDS if self._has_unknown_owner(owners, obj, view) else UNLISTED_SECONDS
            )
        if states <= {_OwnerState.THERE}:
            return Decision()
        unseen = tuple(
            self._owner_to_confirm(owner, obj, view) for owner, state in owners if state is _OwnerState.UNSEEN
        )
        actions = (
            _drop_gone_owners(key, obj, owners) if _OwnerState.THERE in states else _collect(key, obj, view, states)
        )
        return Decision(tuple(IfOwnersGone(unseen, one) if unseen else one for one in actions))

    def _owner_state(self, owner: Mapping[str, Any], obj: Object, view: View) -> _OwnerState:
        if view.is_former_owner(owner["uid"]):
            return _OwnerState.GONE
        place = self._owner_ref(owner, obj, view)
        if place is None or not view.is_listed(place.resource):
            return _OwnerState.UNKNOWN
        found = view.get(*place)
        if found is None or found["metadata"]["uid"] != owner["uid"]:
            return _OwnerState.UNSEEN
        return _OwnerState.WAITS if _waits_for_dependents(found) else _OwnerState.THERE

    def _has_unknown_owner(
        self, owners: Iterable[tuple[Mapping[str, Any], _OwnerState]], obj: Object, view: View
    ) -> bool:
        """Whether an owner is of a kind that this API server does not serve."""
        return any(state is _OwnerState.UNKNOWN and not self._owner_ref(owner, obj, view) for owner, state in owners)

    def _owner_ref(self, owner: Mapping[str, Any], obj: Object, view: View) -> ObjectRef | None:
        """The owner in the dependent's namespace; a cluster-scoped object cannot have a namespaced owner."""
        found = find_served_kind(self._kinds, owner["apiVersion"], owner["kind"], view)
        namespace = obj["metadata"].get("namespace", "")
        if found is None or (found.namespaced and not namespace):
            return None
        return ObjectRef(found.resource, namespace if found.namespaced else "", owner["name"])

    def _owner_to_confirm(self, owner: Mapping[str, Any], obj: Object, view: View) -> tuple[ObjectRef, str]:
        place = self._owner_ref(owner, obj, view)
        assert place, "it has been looked for there"
        return place, owner["uid"]


def _drop_gone_owners(
    key: ObjectRef, obj: Object, owners: Iterable[tuple[Mapping[str, Any], _OwnerState]]
) -> list[PatchObject | DeleteObject]:
    return [
        _metadata_patch(key, obj, {"ownerReferences": [owner for owner, state in owners if state is _OwnerState.THERE]})
    ]


def _collect(key: ObjectRef, obj: Object, view: View, states: set[_OwnerState]) -> list[PatchObject | DeleteObject]:
    """Deletes in the foreground if an owner waits and the object has dependents of its own.

    Breaks cycles of waiting owners.
    """
    metadata = obj["metadata"]
    dependents = [dependent for _, dependent in view.dependents(metadata["uid"])]
    if _OwnerState.WAITS in states and dependents:
        deletion = DeleteObject(key, uid=metadata["uid"], propagation="Foreground")
        free = [{**owner, "blockOwnerDeletion": False} for owner in metadata["ownerReferences"]]
        circle = any(map(_waits_for_dependents, dependents)) and free != metadata["ownerReferences"]
        return [*([_metadata_patch(key, obj, {"ownerReferences": free})] if circle else []), deletion]
    policy = next((name for one, name in _POLICIES if one in (metadata.get("finalizers") or ())), "Background")
    return [DeleteObject(key, uid=metadata["uid"], propagation=policy)]


# -- objects being deleted ---------------------------------------------------------------------------------------------


def _decide_owner(key: ObjectRef, obj: Object, view: View) -> Decision:
    """Removes the finalizer once no dependent, or no blocking dependent, remains."""
    mine = [one for one in (ORPHAN, FOREGROUND) if one in (obj["metadata"].get("finalizers") or ())]
    if not mine:
        return Decision()
    if not all(view.is_listed(one.resource) for one in custom_kinds(view)):
        return Decision(again_in=UNLISTED_SECONDS)
    dependents = view.dependents(obj["metadata"]["uid"])
    if mine[0] == ORPHAN and dependents:
        return Decision(tuple(_orphan_dependents(obj, dependents)))
    if mine[0] == FOREGROUND and any(_blocks_owner(dependent, obj) for _, dependent in dependents):
        return Decision()  # each dependent is reconciled by itself
    return Decision(finalizers.remove_finalizer(key.resource, obj, mine[0]))


def _orphan_dependents(obj: Object, dependents: Iterable[tuple[ObjectRef, Object]]) -> Iterator[Action]:
    for place, dependent in dependents:
        owners = [one for one in dependent["metadata"]["ownerReferences"] if one["uid"] != obj["metadata"]["uid"]]
        yield _metadata_patch(place, dependent, {"ownerReferences": owners})


def _is_being_deleted(obj: Object | None) -> bool:
    return obj is not None and bool(obj["metadata"].get("deletionTimestamp"))


def _waits_for_dependents(owner: Object) -> bool:
    metadata = owner["metadata"]
    return bool(metadata.get("deletionTimestamp")) and FOREGROUND in (metadata.get("finalizers") or ())


def _blocks_owner(dependent: Object, owner: Object) -> bool:
    owners = dependent["metadata"].get("ownerReferences") or ()
    return any(one["uid"] == owner["metadata"]["uid"] and one.get("blockOwnerDeletion") for one in owners)


def _metadata_patch(key: ObjectRef, obj: Object, metadata: Object) -> PatchObject:
    """Replaces whole lists; the revision as precondition protects concurrent additions."""
    own = obj["metadata"]
    return PatchObject(key, {"metadata": metadata}, uid=own["uid"], revision=own["resourceVersion"])
