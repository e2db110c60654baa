"""Definitions at work: as they are stored, names are accepted, kinds are served, and objects go with them.

What controllers of Kubernetes do some milliseconds later happens here at once, in the same turn as the write: whoever
has an answer can use the kind. Each step is a version of its own, which watches see.
"""

from collections.abc import Sequence

from lastcall.lab.apiserver import meta
from lastcall.lab.apiserver.custom import conditions
from lastcall.lab.apiserver.custom.definition import FINALIZER
from lastcall.lab.apiserver.custom.resource import resources
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.scheme import Resource, Scheme
from lastcall.lab.apiserver.store import Change, Key, Kind, Store, Stored
from lastcall.ports import Clock

RESOURCE = "customresourcedefinitions.apiextensions.k8s.io"


class Definitions:
    """Keeps the scheme as the definitions in the store want it."""

    def __init__(self, store: Store, scheme: Scheme, clock: Clock) -> None:
        self._store = store
        self._scheme = scheme
        self._clock = clock
        self._served: dict[str, Sequence[Resource]] = {}

    def load(self) -> None:
        """Serves what an earlier life has left."""
        for stored in list(self._store.objects(RESOURCE)):
            self._serve(stored.object())
            self._settle(stored)

    def changed(self, change: Change) -> None:
        """After a change of the store."""
        key = change.new.key
        if key.resource == RESOURCE and change.kind is Kind.DELETED:
            self._withdraw(key.name)
            self._others(change.new.object())
        elif key.resource == RESOURCE:
            self._settle(change.new)
        elif change.kind is Kind.DELETED:
            self._emptied(key.resource)

    # -- serving -------------------------------------------------------------------------------------------------------

    def _settle(self, stored: Stored) -> None:
        """One step on the way of a definition; a write makes the next one."""
        obj = stored.object()
        if obj["metadata"].get("deletionTimestamp"):
            self._terminate(stored, obj)
            return
        others = [one.object() for one in self._store.objects(RESOURCE) if one.key != stored.key]
        if conditions.settle(obj, others, wall=self._clock.wall()):
            self._store.put(stored.key, obj, expected=stored.revision)
            return
        self._serve(obj)

    def _serve(self, obj: Object) -> None:
        name = obj["metadata"]["name"]
        self._withdraw(name)
        if conditions.holds(obj, "Established"):
            self._served[name] = resources(obj)
            for resource in self._served[name]:
                self._scheme.add(resource)

    def _withdraw(self, name: str) -> None:
        for resource in self._served.pop(name, ()):
            self._scheme.remove(resource)

    def _others(self, gone: Object) -> None:
        """Its names are free for others of the group."""
        for stored in list(self._store.objects(RESOURCE)):
            if stored.object()["spec"]["group"] == gone["spec"]["group"]:
                self._settle(stored)

    def terminating(self, resource: Resource) -> bool:
        """Whether the definition of a custom resource is being deleted."""
        stored = self._store.get(Key(RESOURCE, "", resource.qualified)) if resource.custom else None
        return stored is not None and bool(stored.object()["metadata"].get("deletionTimestamp"))

    # -- deletion ------------------------------------------------------------------------------------------------------

    def _terminate(self, stored: Stored, obj: Object) -> None:
        """Deletes the objects of a definition that is being deleted, and then its finalizer."""
        if FINALIZER not in (obj["metadata"].get("finalizers") or ()):
            return
        name, wall = obj["metadata"]["name"], self._clock.wall()
        for one in list(self._store.objects(name)):
            self._delete(one)
        now = self._store.get(stored.key)
        if self._store.count(name) or now is None or now.revision != stored.revision:
            return
        conditions.put(obj, "Terminating", "False", "InstanceDeletionCompleted", "removed all instances", wall=wall)
        obj["metadata"]["finalizers"] = [one for one in obj["metadata"]["finalizers"] if one != FINALIZER]
        if obj["metadata"]["finalizers"]:
            self._store.put(stored.key, obj, expected=stored.revision)
            return
        del obj["metadata"]["finalizers"]
        self._store.delete(stored.key, obj, expected=stored.revision)

    def _delete(self, stored: Stored) -> None:
        """Removes an object, or marks it if finalizers keep it."""
        obj = stored.object()
        metadata = obj["metadata"]
        if not metadata.get("finalizers"):
            self._store.delete(stored.key, obj, expected=stored.revision)
        elif not metadata.get("deletionTimestamp"):
            metadata["deletionTimestamp"] = meta.timestamp(self._clock.wall())
            metadata["deletionGracePeriodSeconds"] = 0
            metadata["generation"] = metadata.get("generation", 0) + 1
            self._store.put(stored.key, obj, expected=stored.revision)

    def _emptied(self, resource: str) -> None:
        """The last object of a definition that waits for that has gone."""
        if resource not in self._served or self._store.count(resource):
            return
        stored = self._store.get(Key(RESOURCE, "", resource))
        if stored and stored.object()["metadata"].get("deletionTimestamp"):
            self._settle(stored)
