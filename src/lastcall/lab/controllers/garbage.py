"""The garbage collector: what nobody owns any more goes (``pkg/controller/garbagecollector``).

Background: an object goes when all of its owners are gone. Foreground: an owner with the finalizer
``foregroundDeletion`` waits for the dependents that block it. Orphan: an owner with ``orphan`` lets go of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from lastcall.lab.controllers import finalizers
from lastcall.lab.controllers.actions import Action, Decision, Delete, IfGone, Patch
from lastcall.lab.controllers.controller import CUSTOM
from lastcall.lab.controllers.kinds import DEFINITIONS, Kinds, customs, served
from lastcall.lab.controllers.view import Object, Ref, View, ref

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
UNLISTED_SECONDS = 1.0
"""Until it looks again at what depends on a resource that is not listed yet."""
UNKNOWN_SECONDS = 30.0
"""Until it looks again at an object with an owner of a kind that is not known."""

_POLICIES = ((ORPHAN, "Orphan"), (FOREGROUND, "Foreground"))


class _Owner(Enum):
    THERE = "there"
    WAITS = "waits for its dependents"
    GONE = "gone"
    UNSEEN = "not seen, so that it may be gone"
    UNKNOWN = "of a kind that is not known, or not listed yet"


class Garbage:
    """``kinds`` are those that are built in. An object with an owner of a kind that is not known is left alone."""

    name = "garbage-collector"

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self.resources: Sequence[str] = tuple(sorted({one.resource for one in kinds.values()} | {DEFINITIONS, CUSTOM}))

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The object, what depends on it, and what it depends on: each only if there may be something to be done.

        Of nearly all changes it has nothing to say: it looks at what goes, at what names an owner that is not simply
        there, and at what names an owner that has gone or waits since this change.
        """
        key = ref(resource, obj)
        now = view.get(*key)
        if now is obj and self._concerns(obj, view):
            yield key
        if _waits(obj) or now is None or now["metadata"]["uid"] != obj["metadata"]["uid"]:
            for place, _ in view.dependents(obj["metadata"]["uid"]):
                yield place
        for owner in obj["metadata"].get("ownerReferences") or ():
            if (place_of := self._place(owner, obj, view)) and _leaves(view.get(*place_of)):
                yield place_of

    def _concerns(self, obj: Object, view: View) -> bool:
        owners = obj["metadata"].get("ownerReferences") or ()
        return _leaves(obj) or any(self._state(owner, obj, view) is not _Owner.THERE for owner in owners)

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """What becomes of one object."""
        obj = view.get(*key)
        if obj is None:
            return Decision()
        if obj["metadata"].get("deletionTimestamp"):
            return _leaving(key, obj, view)
        return self._owned(key, obj, view)

    # -- what has owners -----------------------------------------------------------------------------------------------

    def _owned(self, key: Ref, obj: Object, view: View) -> Decision:
        """Goes if no owner is left that is to stay; otherwise the references to the others go."""
        owners = [(owner, self._state(owner, obj, view)) for owner in obj["metadata"].get("ownerReferences") or ()]
        states = {state for _, state in owners}
        if _Owner.UNKNOWN in states:
            return Decision(again_in=UNKNOWN_SECONDS if self._unknown(owners, obj, view) else UNLISTED_SECONDS)
        if states <= {_Owner.THERE}:
            return Decision()
        unseen = tuple(self._asked(owner, obj, view) for owner, state in owners if state is _Owner.UNSEEN)
        actions = _kept(key, obj, owners) if _Owner.THERE in states else _collected(key, obj, view, states)
        return Decision(tuple(IfGone(unseen, one) if unseen else one for one in actions))

    def _state(self, owner: Mapping[str, Any], obj: Object, view: View) -> _Owner:
        if view.left(owner["uid"]):
            return _Owner.GONE
        place = self._place(owner, obj, view)
        if place is None or not view.listed(place.resource):
            return _Owner.UNKNOWN
        found = view.get(*place)
        if found is None or found["metadata"]["uid"] != owner["uid"]:
            return _Owner.UNSEEN
        return _Owner.WAITS if _waits(found) else _Owner.THERE

    def _unknown(self, owners: Iterable[tuple[Mapping[str, Any], _Owner]], obj: Object, view: View) -> bool:
        """Whether there is an owner of which nobody knows where it would lie."""
        return any(state is _Owner.UNKNOWN and not self._place(owner, obj, view) for owner, state in owners)

    def _place(self, owner: Mapping[str, Any], obj: Object, view: View) -> Ref | None:
        """In the namespace of the dependent; an object of the cluster cannot have an owner in a namespace."""
        found = served(self._kinds, owner["apiVersion"], owner["kind"], view)
        namespace = obj["metadata"].get("namespace", "")
        if found is None or (found.namespaced and not namespace):
            return None
        return Ref(found.resource, namespace if found.namespaced else "", owner["name"])

    def _asked(self, owner: Mapping[str, Any], obj: Object, view: View) -> tuple[Ref, str]:
        place = self._place(owner, obj, view)
        assert place, "it has been looked for there"
        return place, owner["uid"]


def _kept(key: Ref, obj: Object, owners: Iterable[tuple[Mapping[str, Any], _Owner]]) -> list[Patch | Delete]:
    return [_change(key, obj, {"ownerReferences": [owner for owner, state in owners if state is _Owner.THERE]})]


def _collected(key: Ref, obj: Object, view: View, states: set[_Owner]) -> list[Patch | Delete]:
    """In the foreground if an owner waits and others depend on it in turn; in a circle it blocks nobody any more."""
    metadata = obj["metadata"]
    dependents = [dependent for _, dependent in view.dependents(metadata["uid"])]
    if _Owner.WAITS in states and dependents:
        deletion = Delete(key, uid=metadata["uid"], propagation="Foreground")
        free = [{**owner, "blockOwnerDeletion": False} for owner in metadata["ownerReferences"]]
        circle = any(map(_waits, dependents)) and free != metadata["ownerReferences"]
        return [*([_change(key, obj, {"ownerReferences": free})] if circle else []), deletion]
    policy = next((name for one, name in _POLICIES if one in (metadata.get("finalizers") or ())), "Background")
    return [Delete(key, uid=metadata["uid"], propagation=policy)]


# -- what is being deleted ---------------------------------------------------------------------------------------------


def _leaving(key: Ref, obj: Object, view: View) -> Decision:
    """Its finalizer goes once nothing depends on it, or nothing that blocks it."""
    mine = [one for one in (ORPHAN, FOREGROUND) if one in (obj["metadata"].get("finalizers") or ())]
    if not mine:
        return Decision()
    if not all(view.listed(one.resource) for one in customs(view)):
        return Decision(again_in=UNLISTED_SECONDS)
    dependents = view.dependents(obj["metadata"]["uid"])
    if mine[0] == ORPHAN and dependents:
        return Decision(tuple(_orphaned(obj, dependents)))
    if mine[0] == FOREGROUND and any(_blocks(dependent, obj) for _, dependent in dependents):
        return Decision()  # each of them is looked at for itself
    return Decision(finalizers.remove(key.resource, obj, mine[0]))


def _orphaned(obj: Object, dependents: Iterable[tuple[Ref, Object]]) -> Iterator[Action]:
    for place, dependent in dependents:
        owners = [one for one in dependent["metadata"]["ownerReferences"] if one["uid"] != obj["metadata"]["uid"]]
        yield _change(place, dependent, {"ownerReferences": owners})


def _leaves(obj: Object | None) -> bool:
    return obj is not None and bool(obj["metadata"].get("deletionTimestamp"))


def _waits(owner: Object) -> bool:
    metadata = owner["metadata"]
    return bool(metadata.get("deletionTimestamp")) and FOREGROUND in (metadata.get("finalizers") or ())


def _blocks(dependent: Object, owner: Object) -> bool:
    owners = dependent["metadata"].get("ownerReferences") or ()
    return any(one["uid"] == owner["metadata"]["uid"] and one.get("blockOwnerDeletion") for one in owners)


def _change(key: Ref, obj: Object, metadata: Object) -> Patch:
    """Lists are written whole, so that the revision keeps what others add meanwhile."""
    own = obj["metadata"]
    return Patch(key, {"metadata": metadata}, uid=own["uid"], revision=own["resourceVersion"])
