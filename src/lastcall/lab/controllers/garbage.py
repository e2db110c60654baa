"""The garbage collector: what nobody owns any more goes (``pkg/controller/garbagecollector``).

Background: an object goes when all of its owners are gone. Foreground: an owner with the finalizer
``foregroundDeletion`` waits for the dependents that block it. Orphan: an owner with ``orphan`` lets go of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lastcall.lab.controllers.actions import Action, Decision, Delete, Patch
from lastcall.lab.controllers.view import Object, Ref, View, ref

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Garbage:
    """``kinds`` has the resource of each (apiVersion, kind) that is looked at; owners of other kinds count as present."""

    name = "garbage-collector"

    def __init__(self, kinds: Mapping[tuple[str, str], str]) -> None:
        self._kinds = kinds
        self.resources: Sequence[str] = tuple(sorted(set(kinds.values())))

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The object, what depends on it, and what it depends on."""
        yield ref(resource, obj)
        for place, _ in view.dependents(obj["metadata"]["uid"]):
            yield place
        for owner in obj["metadata"].get("ownerReferences") or ():
            if place_of := self._place(owner, obj):
                yield place_of

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """What becomes of one object."""
        obj = view.get(*key)
        if obj is None:
            return Decision()
        metadata = obj["metadata"]
        if metadata.get("deletionTimestamp"):
            return Decision(tuple(self._leaving(key, obj, view)))
        owners = metadata.get("ownerReferences") or ()
        if owners and all(self._gone(owner, obj, view) for owner in owners):
            propagation = next((p for f, p in _POLICIES if f in (metadata.get("finalizers") or ())), "Background")
            return Decision((Delete(key, uid=metadata["uid"], propagation=propagation),))
        return Decision()

    def _leaving(self, key: Ref, obj: Object, view: View) -> Iterator[Action]:
        finalizers = obj["metadata"].get("finalizers") or []
        dependents = view.dependents(obj["metadata"]["uid"])
        if ORPHAN in finalizers:
            for place, dependent in dependents:
                owners = [o for o in dependent["metadata"]["ownerReferences"] if o["uid"] != obj["metadata"]["uid"]]
                yield Patch(place, {"metadata": {"ownerReferences": owners}}, uid=dependent["metadata"]["uid"])
            if not dependents:
                yield _without(key, obj, ORPHAN)
        elif FOREGROUND in finalizers:
            for place, dependent in dependents:
                if not dependent["metadata"].get("deletionTimestamp"):
                    yield Delete(place, uid=dependent["metadata"]["uid"], propagation="Foreground")
            if not any(_blocks(dependent, obj) for _, dependent in dependents):
                yield _without(key, obj, FOREGROUND)

    def _place(self, owner: Mapping[str, Any], obj: Object) -> Ref | None:
        resource = self._kinds.get((owner["apiVersion"], owner["kind"]))
        if resource is None:
            return None
        namespace = "" if owner["kind"] in ("Node", "PersistentVolume") else obj["metadata"].get("namespace", "")
        return Ref(resource, namespace, owner["name"])

    def _gone(self, owner: Mapping[str, Any], obj: Object, view: View) -> bool:
        place = self._place(owner, obj)
        if place is None:
            return False
        found = view.get(*place)
        return found is None or found["metadata"]["uid"] != owner["uid"]


_POLICIES = ((ORPHAN, "Orphan"), (FOREGROUND, "Foreground"))


def _blocks(dependent: Object, owner: Object) -> bool:
    owners = dependent["metadata"].get("ownerReferences") or ()
    return any(one["uid"] == owner["metadata"]["uid"] and one.get("blockOwnerDeletion") for one in owners)


def _without(key: Ref, obj: Object, finalizer: str) -> Patch:
    """The revision keeps finalizers that others add meanwhile."""
    metadata = obj["metadata"]
    left = [one for one in metadata["finalizers"] if one != finalizer]
    return Patch(key, {"metadata": {"finalizers": left}}, uid=metadata["uid"], revision=metadata["resourceVersion"])
